"""Every name that onnxruntime has is in tenon.onnxruntime, or in its list with a reason; and install()."""
import enum
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import tenon
import tenon.onnxruntime as ours
from side_by_side import onnxruntime as real
from side_by_side import real_state
from small_models import linear
from tenon.onnxruntime import OrtEpAssignedSubgraph, _config, _not_here
from tenon.onnxruntime.capi import onnxruntime_inference_collection, onnxruntime_pybind11_state

ROOT = Path(__file__).resolve().parent.parent.parent
MIGRATION = (ROOT / "docs/migration.md").read_text()


def public(thing):
    return [name for name in dir(thing) if not name.startswith("_")]


def classes(module, base=object):
    """The names of a module's public classes."""
    members = [(name, getattr(module, name)) for name in public(module)]
    return [name for name, member in members if inspect.isclass(member) and issubclass(member, base)]


def test_every_public_name_is_here_or_has_a_reason():
    here = set(public(ours)) | {"quantization", "tools", "transformers"}  # parts that onnxruntime has where somebody imported them
    assert set(public(real)) - here - set(_not_here.REASONS) == set()
    assert set(_not_here.REASONS) & here == set(), "a name that is here needs no reason"
    assert set(_not_here.REASONS) <= set(public(real)), "a name that onnxruntime has not needs no reason"


def test_the_list_of_names_is_documented():
    for name, reason in _not_here.REASONS.items():
        assert f"`{name}`" in MIGRATION and reason in MIGRATION, name
        with pytest.raises(AttributeError, match=name):
            getattr(ours, name)


def test_every_option_and_key_is_documented():
    for name in public(ours.SessionOptions) + public(ours.RunOptions):
        assert f"`{name}`" in MIGRATION, name
    for key in _config.known_keys():
        assert f"`{key}`" in MIGRATION, key


#: Members of classes that are not here.
MEMBERS_NOT_HERE = {
    "SessionOptions": {"add_provider_for_devices", "clear_ep_context_data_read_func", "set_ep_context_data_read_func",
                       "set_provider_selection_policy", "set_provider_selection_policy_delegate"},
    "RunOptions": {"add_active_adapter"},
    "OrtValue": {"as_sparse_tensor", "ort_value_from_sparse_tensor"},
    "InferenceSession": {"get_input_epdevices", "release_captured_graph", "set_ep_dynamic_options"},
    "OrtMemoryInfo": {"create_v2"},
}


def an_instance(name):
    """Of classes whose members only instances have."""
    makers = {"OrtMemoryInfo": lambda: ours.InferenceSession(linear()).get_input_memory_infos()[0],
              "OrtEpAssignedNode": lambda: an_instance("OrtEpAssignedSubgraph").get_nodes()[0],
              "OrtEpAssignedSubgraph": lambda: OrtEpAssignedSubgraph(tenon.load(linear()).placement()[0]),
              "OrtArenaCfg": lambda: ours.OrtArenaCfg(0, -1, -1, -1),
              "ModelMetadata": lambda: ours.InferenceSession(linear()).get_modelmeta()}
    return makers.get(name, lambda: getattr(ours, name))()


@pytest.mark.parametrize("name", [name for name in classes(real) if name not in _not_here.REASONS])
def test_classes_have_the_same_members(name):
    of_instances = {"name", "value"} if name in classes(ours, enum.Enum) else set()
    missing = {member for member in public(getattr(real, name)) if not hasattr(an_instance(name), member)} - of_instances
    assert missing == MEMBERS_NOT_HERE.get(name, set())
    for member in MEMBERS_NOT_HERE.get(name, ()):
        assert f"`{member}`" in MIGRATION, member


def arguments(method):
    return [(one.name, one.default) for one in inspect.signature(method).parameters.values()]


@pytest.mark.parametrize("kind", ["InferenceSession", "OrtValue", "OrtDevice", "IOBinding"])
def test_methods_take_the_same_arguments(kind):
    mine, theirs = getattr(ours, kind), getattr(real, kind)
    for name in set(public(theirs)) - MEMBERS_NOT_HERE.get(kind, set()):
        assert arguments(getattr(mine, name)) == arguments(getattr(theirs, name)), name


@pytest.mark.parametrize("name", classes(ours, enum.Enum))
def test_enumerations_have_the_same_values(name):
    mine, theirs = getattr(ours, name), getattr(real, name)
    assert {key: int(member) for key, member in mine.__members__.items()} == \
        {key: int(member) for key, member in theirs.__members__.items()}
    for key, member in mine.__members__.items():
        assert member == int(member) and hash(member) is not None and mine(int(member)) is member
        assert str(member) == str(getattr(theirs, key)) and repr(member) == repr(getattr(theirs, key))


def test_exceptions_have_the_same_names_and_derive_from_tenons():
    for name in classes(real_state, Exception):
        mine = getattr(onnxruntime_pybind11_state, name)
        assert issubclass(mine, tenon.Error) and not issubclass(mine, (ValueError, RuntimeError, OSError))
        assert str(mine("text")) == "text"
    for name in public(onnxruntime_inference_collection):
        assert hasattr(real.capi.onnxruntime_inference_collection, name)
    assert public(importlib.import_module("tenon.onnxruntime.capi._pybind_state")) == public(onnxruntime_pybind11_state)


def test_versions_and_the_process():
    assert ours.__version__ == ours.get_version_string() == ours.version == real.__version__
    assert tenon.__version__ in ours.get_build_info() and ours.get_device() == "CPU"
    assert ours.has_collective_ops() == real.has_collective_ops() and ours.package_name == real.package_name
    for call in (ours.enable_telemetry_events, ours.disable_telemetry_events, ours.preload_dlls, ours.print_debug_info,
                 ours.set_global_thread_pool_sizes, lambda: ours.set_default_logger_verbosity(0),
                 lambda: ours.create_and_register_allocator(None, None)):
        assert call() is None
    with pytest.warns(UserWarning, match="set_seed has no effect"):
        ours.set_seed(3)


@pytest.mark.parametrize("name, hint", [("transformers", "tenon.optimize"), ("training", "train with another framework")])
def test_parts_that_are_not_here_say_what_to_use(name, hint):
    with pytest.raises(ImportError, match=hint):
        importlib.import_module(f"tenon.onnxruntime.{name}")


INSTALLED = """
import sys, warnings
import tenon.onnxruntime
{before}
tenon.onnxruntime.install()
tenon.onnxruntime.install()
import onnxruntime as ort
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, Fail
from onnxruntime.capi import _pybind_state as C
import onnxruntime.capi.onnxruntime_inference_collection as collection
from onnxruntime import InferenceSession, SessionOptions, backend
assert ort is tenon.onnxruntime and C.InvalidArgument is InvalidArgument and collection.InferenceSession is InferenceSession
assert backend.prepare({path!r}).run([[[1.0, 2.0, 3.0]]])["y"].shape == (1, 2)
from onnxruntime import quantization, tools, transformers
assert all("site-packages/onnxruntime/" in part.__file__ for part in (quantization, tools, transformers))
quantization.quantize_dynamic({path!r}, {path!r} + ".quantized.onnx")
assert InferenceSession({path!r} + ".quantized.onnx").run(["y"], {{"x": [[1.0, 2.0, 3.0]]}})[0].shape == (1, 2)
try:
    import onnxruntime.training
except ImportError as error:
    assert "Tenon has no onnxruntime.training" in str(error), error
else:
    raise AssertionError("training")
assert not any("onnxruntime_pybind11_state.cpython" in line for line in open("/proc/self/maps")) or {before!r}
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    session = InferenceSession({path!r}, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
if "CUDAExecutionProvider" not in ort.get_available_providers():
    assert any("'CUDAExecutionProvider' is not used" in str(one.message) for one in heard)
    assert session.placement()[0].declined[0][0] == "CUDAExecutionProvider"
try:
    session.run(None, {{"q": 1}})
except ValueError as error:
    assert "Required inputs" in str(error)
tenon.onnxruntime.uninstall()
tenon.onnxruntime.uninstall()
import onnxruntime as after
assert after is not tenon.onnxruntime and after.__name__ == "onnxruntime" and "site-packages/onnxruntime" in after.__file__
{after}
print("done")
"""


@pytest.mark.parametrize("before, after", [("", ""), ("import onnxruntime as first", "assert after is first")])
def test_install(tmp_path, before, after):
    (tmp_path / "m.onnx").write_bytes(linear())
    code = INSTALLED.format(before=before, after=after, path=str(tmp_path / "m.onnx"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
