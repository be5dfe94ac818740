#!/usr/bin/env python3
"""Writes the backend tests of the installed `onnx` package as test-case folders.

usage: onnx_suite.py [FOLDER]      (default: build/suite)

    FOLDER/{node,simple,pytorch-converted,pytorch-operator,light}/CASE/
        model.onnx
        tolerance.json                            {"rtol": …, "atol": …}, only where not the default 1e-3 and 1e-7;
                                                  "nonzero" where outputs are 0 at random
        test_data_set_N/{input,output}_M.pb       TensorProto, SequenceProto or OptionalProto, by the value's type

The package builds the node cases in memory and ships the others as files, the light models without inputs. Tolerances
are the package's, but for the cases in tests/conformance/comparisons.txt. The folder is written once for each version of
the package, of this file and of that list.
"""
import hashlib
import json
import shutil
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = ROOT / "build" / "suite"
COMPARISONS = ROOT / "tests" / "conformance" / "comparisons.txt"
DEFAULT_TOLERANCE = {"rtol": 1e-3, "atol": 1e-7}
BFLOAT16_RTOL = 2.0**-6  # two units in the last place, as onnx's own runner allows


def to_proto(value, info):
    """`value` as the message that its type in the graph asks for."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        element = info.type.optional_type.elem_type.WhichOneof("value")
        if value is None:
            return numpy_helper.from_optional(None, info.name)
        return numpy_helper.from_optional(value if element == "sequence_type" else np.asarray(value), info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


def write_tolerance(case_folder, rtol, atol):
    tolerance = {"rtol": rtol, "atol": atol}
    if tolerance != DEFAULT_TOLERANCE:
        (case_folder / "tolerance.json").write_text(json.dumps(tolerance) + "\n")


def write_node_cases(folder):
    import numpy as np
    import onnx
    from onnx.backend.test.loader import load_model_tests

    np.random.seed(0)  # some cases draw their inputs from it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    for case in cases:
        case_folder = folder / case.name
        case_folder.mkdir(parents=True)
        (case_folder / "model.onnx").write_bytes(case.model.SerializeToString())
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data_set = case_folder / f"test_data_set_{i}"
            data_set.mkdir()
            for name, values, infos in (("input", inputs, case.model.graph.input),
                                        ("output", outputs, case.model.graph.output)):
                for j, (value, info) in enumerate(zip(values, infos, strict=True)):
                    (data_set / f"{name}_{j}.pb").write_bytes(to_proto(value, info).SerializeToString())
        gives_bfloat16 = any(o.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for o in case.model.graph.output)
        write_tolerance(case_folder, max(case.rtol, BFLOAT16_RTOL) if gives_bfloat16 else case.rtol, case.atol)


def copy_file_cases(data, folder, kind):
    for source in sorted((data / kind).iterdir()):
        if (source / "model.onnx").exists():
            shutil.copytree(source, folder / source.name)
            described = source / "data.json"
            if described.exists():
                stated = json.loads(described.read_text())
                write_tolerance(folder / source.name, stated.get("rtol", 1e-3), stated.get("atol", 1e-7))


def write_light_cases(data, folder):
    """The light models: their input counts up from 0 to 1; outputs and tolerances are stored with the package."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    tolerances = {}
    for described in (data / "real").glob("*/data.json"):
        stated = json.loads(described.read_text())
        tolerances[stated["model_name"]] = stated
    for path in sorted((data / "light").glob("light_*.onnx")):
        name = path.stem.removeprefix("light_")
        case_folder = folder / name
        data_set = case_folder / "test_data_set_0"
        data_set.mkdir(parents=True)
        shutil.copy(path, case_folder / "model.onnx")
        graph = onnx.load(path).graph
        weights = {tensor.name for tensor in graph.initializer}
        inputs = [i for i in graph.input if i.name not in weights]
        for i, info in enumerate(inputs):
            shape = [d.dim_value if d.HasField("dim_value") else 1 for d in info.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            value = (np.arange(count).reshape(shape) / count).astype(np.float32)
            (data_set / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value, info.name).SerializeToString())
        for i in range(len(graph.output)):
            shutil.copy(path.with_name(f"{path.stem}_output_{i}.pb"), data_set / f"output_{i}.pb")
        stated = tolerances.get(name, {})
        write_tolerance(case_folder, stated.get("rtol", 1e-3), stated.get("atol", 1e-7))


def read_comparisons(path=COMPARISONS):
    """{case: {key: value}} of lines `CASE: key=value …: reason`; a line without a reason is an error."""
    comparisons = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, settings, reason = (*(part.strip() for part in line.split(": ", 2)), "", "")[:3]
        if not reason:
            raise ValueError(f"{path.name}: no reason is given for how {name} is compared")
        comparisons[name] = {key: json.loads(value) for key, value in (s.split("=") for s in settings.split())}
        if unknown := set(comparisons[name]) - {"rtol", "atol", "nonzero"}:
            raise ValueError(f"{path.name}: {name} has unknown settings: {', '.join(sorted(unknown))}")
    return comparisons


def change_tolerances(folder, comparisons):
    for name, settings in comparisons.items():
        if not (folder / name).is_dir():
            raise ValueError(f"{COMPARISONS.name}: the suite has no case {name}")
        file = folder / name / "tolerance.json"
        stated = json.loads(file.read_text()) if file.exists() else DEFAULT_TOLERANCE
        file.write_text(json.dumps({**stated, **settings}) + "\n")


def write_suite(folder=DEFAULT_FOLDER):
    """Makes sure that the suite of the installed onnx package is in `folder`."""
    from importlib.metadata import version

    sources = Path(__file__).read_bytes() + COMPARISONS.read_bytes()
    made_by = f"onnx {version('onnx')}, {hashlib.sha256(sources).hexdigest()}\n"
    stamp = folder / "made-by.txt"
    if stamp.exists() and stamp.read_text() == made_by:
        return folder
    import onnx.backend.test

    data = Path(onnx.backend.test.__file__).parent / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_node_cases(folder / "node")
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        copy_file_cases(data, folder / kind, kind)
    write_light_cases(data, folder / "light")
    change_tolerances(folder, read_comparisons())
    stamp.write_text(made_by)
    return folder


if __name__ == "__main__":
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        sys.exit(__doc__)
    target = write_suite(Path(sys.argv[1]) if len(sys.argv) == 2 else DEFAULT_FOLDER)
    for kind_folder in sorted(p for p in target.iterdir() if p.is_dir()):
        print(f"{kind_folder.name}: {sum(1 for _ in kind_folder.iterdir())} cases")
