"""The tables of src/tools/targets: which operator versions and types run in which releases."""
import collections

from cases import operator_versions, places


def ranges(found, releases):
    """'1.16.0-1.18.1,1.20.0-' of the releases found; an open end goes to the newest one."""
    parts, start = [], None
    for i, release in enumerate([*releases, None]):
        if release in found and release is not None:
            start = release if start is None else start
        elif start is not None:
            last = releases[i - 1]
            parts.append(f"{start}-" if i == len(releases) else start if last == start else f"{start}-{last}")
            start = None
    return ",".join(parts)


def grouped(by_type, releases):
    """{releases: [types]}, in order of the first release."""
    groups = collections.defaultdict(list)
    for type_, found in sorted(by_type.items()):
        if found:
            groups[ranges(found, releases)].append(type_)
    return sorted(groups.items(), key=lambda item: [releases.index(item[0].split("-")[0].split(",")[0]), item[0]])


def lines_of(schema, verdicts, releases):
    """verdicts: {(parameter, type): {release: 'ran', 'fails' or 'registered'}}."""
    name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
    found = False
    for parameter in sorted({parameter for parameter, _ in verdicts}):
        place = places(schema, parameter) if parameter else "-"
        for kind in ("ran", "registered", "fails"):
            by_type = {type_: {r for r, v in by_release.items() if v == kind}
                       for (p, type_), by_release in verdicts.items() if p == parameter}
            for where, types in grouped(by_type, releases):
                found = True
                yield f"{kind} {name} {schema.since_version} {place} {where} {' '.join(types)}"
    if not found:
        yield f"never {name} {schema.since_version}"


def schemas():
    return operator_versions(("", "ai.onnx.ml"))


def measured(lines, verdicts):
    """{(domain, operator, version): {pair: 2 where it ran, 1 where only a session was made, else 0}} of one release, and its limits; verdicts in the order of the cases."""
    best, result, limits = {"ran": 2, "run": 1}, collections.defaultdict(dict), {}
    for case, verdict in zip(lines, verdicts):
        if "limit" in case:
            if verdict == "ran":
                limits[case["limit"]] = max(case["version"], limits.get(case["limit"], 0))
            continue
        found = result[case["domain"], case["operator"], case["version"]]
        for pair in case["pairs"]:
            found[tuple(pair)] = max(found.get(tuple(pair), 0), best.get(verdict, 0))
    return result, limits
