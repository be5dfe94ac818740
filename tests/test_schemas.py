"""What Tenon says it knows of each operator, against the schemas of the onnx package: versions and element types."""
import collections
import json
import re
import subprocess

import onnx


def test_every_version_and_type(tenon):
    listed = json.loads(subprocess.run([tenon, "doctor", "--operators", "--json"], capture_output=True, check=True).stdout)
    ours = {(o["domain"], o["operator"]): o for o in listed["operators"]}
    history = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        history[schema.domain or "ai.onnx", schema.name].append(schema)
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
