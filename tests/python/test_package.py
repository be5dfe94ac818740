"""The package's parts agree with each other: stubs, names, documentation."""
import ast
import inspect
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import tenon
from small_models import linear
from tenon import _tenon

ROOT = Path(__file__).resolve().parent.parent.parent
STUB = Path(_tenon.__file__).with_name("_tenon.pyi")


def members(names):
    return {name for name in names if not name.startswith("_") or name in ("__call__", "__dlpack__", "__array__")}


def test_the_stub_has_what_the_module_has():
    tree = ast.parse(STUB.read_text())
    stubbed = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert members(stubbed) | {"version"} == members(vars(_tenon))
    for name, node in stubbed.items():
        if isinstance(node, ast.ClassDef):
            own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            assert members(own) == members(vars(getattr(_tenon, name))), name


def test_the_stub_types_are_spelled_out():
    """No signature is left to what the binding calls its types."""
    tree = ast.parse(STUB.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            assert node.returns is not None, node.name
            for argument in [*node.args.args, *node.args.kwonlyargs]:
                assert argument.arg == "self" or argument.annotation is not None, (node.name, argument.arg)


def defaults(name):
    """The parameters that the stub has a default for, with it."""
    body = ast.parse(STUB.read_text()).body
    for part in name.split("."):
        (node,) = [node for node in body if getattr(node, "name", "") == part]
        body = node.body
    arguments = node.args
    positional = arguments.args[len(arguments.args) - len(arguments.defaults):]
    pairs = [*zip(positional, arguments.defaults), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return {argument.arg: ast.literal_eval(default) for argument, default in pairs}


def test_the_signatures_of_the_stub_are_those_of_the_module(tmp_path):
    """Every parameter can be given by its name, and the default is one that the function takes."""
    path, inputs = tmp_path / "m.onnx", {"x": [[1, 2, 3]]}
    path.write_bytes(linear())
    model = tenon.load(path, **defaults("load"))
    calls = {"optimize": [path], "verify_optimization": [path, inputs], "inspect": [path], "model_text": [path],
             "difference": [[1.0], [1.0]], "Model.run": [inputs], "Model.__call__": [inputs], "Model.profile": [inputs],
             "Model.random_inputs": [], "Model.placement_report": [], "Tensor.__dlpack__": [], "Tensor.__array__": []}
    for name, arguments in calls.items():
        owner = {"Model": model, "Tensor": tenon.Tensor([1.0])}.get(name.split(".")[0], tenon)
        assert defaults(name)
        getattr(owner, name.split(".")[-1])(*arguments, **defaults(name))
    assert model.bench(inputs, **{**defaults("Model.bench"), "runs": 1}).latency.runs == 1
    tenon.Tensor([1.0], **defaults("Tensor.__init__"))


def test_every_public_name_is_there_and_documented():
    for name in tenon.__all__:
        thing = getattr(tenon, name)
        if name != "__version__":
            assert inspect.getdoc(thing), name
    assert set(tenon.__all__) >= members(vars(_tenon)) - {"version"}
    assert (STUB.parent / "py.typed").exists()


def test_the_reference_is_what_its_script_makes():
    run = subprocess.run([sys.executable, ROOT / "scripts/make_python_reference", "--print"], check=True,
                         capture_output=True, text=True)
    assert run.stdout == (ROOT / "docs/python-reference.md").read_text(), "run .venv/bin/python scripts/make_python_reference"


def test_the_versions_agree():
    assert metadata.version("tenon") == tenon.__version__
