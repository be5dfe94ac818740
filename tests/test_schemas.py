"""What Tenon says it knows of each operator, against the schemas of the onnx package: versions and element types."""
import collections
import json
import re
import subprocess

import onnx


def operators(tenon):
    """What Tenon has and what ONNX has, by domain and name."""
    listed = json.loads(subprocess.run([tenon, "doctor", "--operators", "--json"], capture_output=True, check=True).stdout)
    history = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        history[schema.domain or "ai.onnx", schema.name].append(schema)
    return {(o["domain"], o["operator"]): o for o in listed["operators"]}, history


def test_every_version_and_type(tenon):
    ours, history = operators(tenon)
    problems = [f"{domain}.{name} is not known" for domain, name in sorted(history.keys() - ours.keys())]
    for (domain, name), schemas in history.items():
        if (domain, name) not in ours:
            continue
        known = ours[domain, name]
        missing = {s.since_version for s in schemas if not s.deprecated} - set(known["versions"])
        types = {t for s in schemas for p in [*s.inputs, *s.outputs] for kind in p.types for t in re.findall(r"tensor\((\w+)\)", kind)}
        types -= {t for list_ in known["types"].values() for t in list_}
        if missing or types:
            problems.append(f"{domain}.{name} lacks versions {sorted(missing)}, types {sorted(types)}")
    assert not problems, "\n".join(problems)


def test_what_came_with_a_version_is_not_written_in_older_ones(tenon):
    """Each attribute and input that a version added is either said to have come with it, or the version changed the meaning:
    then nodes are brought back from it or refused."""
    ours, history = operators(tenon)
    problems = []
    for (domain, name), schemas in history.items():
        known = ours.get((domain, name))
        if not known or known["retired"]:
            continue
        schemas.sort(key=lambda schema: schema.since_version)
        for old, new in zip(schemas, schemas[1:]):
            version = new.since_version
            if version in known["changes"] or version in known["ways_back"]:
                continue
            added = set(new.attributes) - set(old.attributes)
            added |= {parameter.name for parameter in new.inputs[len(old.inputs):]}
            missing = added - {what for what, since in known["additions"].items() if since == version}
            if missing:
                problems.append(f"{domain}.{name}: {sorted(missing)} came with version {version}")
        newest = schemas[-1]
        wrong = [what for what, since in known["additions"].items()
                 if any(what in s.attributes for s in schemas if s.since_version < since)
                 or what not in {*newest.attributes, *(parameter.name for parameter in newest.inputs)}]
        if wrong:
            problems.append(f"{domain}.{name}: {wrong} did not come with the version that Tenon says")
    assert not problems, "\n".join(problems)
