"""tenon.onnxruntime.quantization: onnxruntime's names and arguments, on tenon.quantize."""
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tenon
import tenon.onnxruntime.quantization as ours
from small_models import linear
from tenon.onnxruntime.quantization import _extra_options, _not_here, matmul_nbits_quantizer

real = pytest.importorskip("onnxruntime.quantization", reason="there is nothing to compare with")
MIGRATION = (Path(__file__).resolve().parent.parent.parent / "docs/migration.md").read_text()
MODULES = ["calibrate", "matmul_nbits_quantizer", "quant_utils", "quantize", "shape_inference"]


def public(module):
    return {name for name in dir(module) if not name.startswith("_") and not inspect.ismodule(getattr(module, name))}


def test_every_public_name_is_here_or_has_a_reason():
    assert public(real) - public(ours) == set(_not_here.REASONS)
    for name, reason in _not_here.REASONS.items():
        assert f"`{name}`" in MIGRATION and reason in MIGRATION, name
        with pytest.raises(AttributeError, match=reason[:20]):
            getattr(ours, name)


@pytest.mark.parametrize("module", MODULES)
def test_what_is_here_is_where_onnxruntime_has_it(module):
    theirs = importlib.import_module(f"onnxruntime.quantization.{module}")
    mine = importlib.import_module(f"tenon.onnxruntime.quantization.{module}")
    for name in getattr(mine, "__all__", ()):
        assert hasattr(theirs, name), name


CALLABLES = ["quantize", "quantize_static", "quantize_dynamic", "StaticQuantConfig", "DynamicQuantConfig", "quant_pre_process"]
NBITS = ["DefaultWeightOnlyQuantConfig", "RTNWeightOnlyQuantConfig", "GPTQWeightOnlyQuantConfig", "WeightOnlyQuantConfig", "MatMulNBitsQuantizer"]


def parameters(function):
    return [(name, str(p.default)) for name, p in inspect.signature(function).parameters.items() if p.kind != p.VAR_KEYWORD]


@pytest.mark.parametrize("module, name", [("", name) for name in CALLABLES] + [(".matmul_nbits_quantizer", name) for name in NBITS])
def test_arguments_are_the_same(module, name):
    theirs = getattr(importlib.import_module(f"onnxruntime.quantization{module}"), name)
    mine = getattr(importlib.import_module(f"tenon.onnxruntime.quantization{module}"), name)
    assert parameters(mine) == parameters(theirs)


@pytest.mark.parametrize("name", ["QuantType", "QuantFormat", "CalibrationMethod", "QuantizationMode"])
def test_enumerations_are_the_same(name):
    mine, theirs = getattr(ours, name), getattr(real, name)
    assert {key: member.value for key, member in mine.__members__.items()} == {key: member.value for key, member in theirs.__members__.items()}
    assert [str(member) for member in mine] == [str(member) for member in theirs]
    if name == "QuantType":
        assert [member.tensor_type for member in mine] == [member.tensor_type for member in theirs]


def test_every_extra_option_of_onnxruntime_is_known():
    used = set()
    for path in Path(real.__file__).parent.rglob("*.py"):
        used |= set(re.findall(r"""extra_options(?:\.get\(|\[)\s*"([a-z.]*[A-Z][A-Za-z.]+)\"""", path.read_text()))
        used |= set(re.findall(r"""^\s+\("([A-Z]\w+)", "\w+"\),$""", path.read_text(), re.MULTILINE))
    assert used - set(_extra_options.KNOWN) == set()
    for key in _extra_options.KNOWN:
        assert f"`{key}`" in MIGRATION, key


class Reader(ours.CalibrationDataReader):
    def __init__(self, count=8):
        rng = np.random.default_rng(0)
        self.left = [{"x": rng.standard_normal((4, 3)).astype(np.float32)} for _ in range(count)]

    def get_next(self):
        return self.left.pop() if self.left else None


def test_whatever_has_get_next_is_a_reader():
    class Other:
        def get_next(self):
            return None

    assert isinstance(Other(), ours.CalibrationDataReader) and not isinstance(3, ours.CalibrationDataReader)
    assert sum(1 for _ in Reader(3)) == 3


@pytest.fixture
def asked(monkeypatch):
    """The options that tenon.quantize is called with, in place of the call."""
    options = {}

    def record(model, **given):
        options.update(given)
        return SimpleNamespace(model=model)

    monkeypatch.setattr(tenon, "quantize", record)
    return options


def test_static_is_translated(asked, tmp_path):
    ours.quantize_static(linear(), tmp_path / "b", Reader(5), ours.QuantFormat.QOperator, ["MatMul", "Conv"], True, False, ours.QuantType.QUInt16,
                         ours.QuantType.QInt4, nodes_to_exclude=["m"], calibrate_method=ours.CalibrationMethod.Percentile,
                         extra_options={"CalibPercentile": 99.9, "ActivationSymmetric": True, "SmoothQuant": True, "SmoothQuantAlpha": 0.7,
                                        "TensorQuantOverrides": {"t": [{"quant_type": ours.QuantType.QInt8, "rmin": -1.0, "rmax": 2.0}]}})
    assert len(list(asked.pop("calibration"))) == 5
    assert asked == {
        "mode": "static", "format": "qoperator", "only": ["MatMul"], "keep_float": ["m"],
        "per_channel": True, "activations": "uint16", "weights": "int4", "method": "percentile", "percentile": 99.9, "symmetric_activations": True,
        "smooth": 0.7, "overrides": {"t": {"type": "int8", "low": -1.0, "high": 2.0}}, "max_loss": None, "measure": False}


def test_dynamic_is_translated(asked, tmp_path):
    ours.quantize(linear(), tmp_path / "b", ours.DynamicQuantConfig(ours.QuantType.QUInt8, per_channel=True, extra_options={"MatMulConstBOnly": True}))
    assert asked == {"mode": "dynamic", "only": None, "keep_float": None, "per_channel": True, "weights": "uint8", "max_loss": None, "measure": False}


def test_a_moving_average_is_a_method(asked, tmp_path):
    ours.quantize_static(linear(), tmp_path / "b", Reader(), extra_options={"CalibMovingAverage": True})
    assert asked["method"] == "moving-average"


STATIC_REFUSED = [
    (dict(op_types_to_quantize=["Conv"]), "has none of the operators to quantize: Conv"),
    (dict(op_types_to_quantize=["MatMul"], nodes_to_quantize=["m"]), "cannot both be given"),
    (dict(reduce_range=True), "reduce_range cannot be True"),
    (dict(calibration_data_reader=None), "calibration_data_reader is missing"),
    (dict(calibrate_method=ours.CalibrationMethod.Distribution), "calibrate_method cannot be"),
    (dict(activation_type=ours.QuantType.QFLOAT8E4M3FN), "activation_type cannot be QuantType.QFLOAT8E4M3FN"),
    (dict(calibration_providers=["CUDAExecutionProvider"]), "calibration runs on the CPU"),
    (dict(calibration_cache_path="ranges.json"), "calibration_cache_path cannot be given"),
    (dict(extra_options={"QuantizeBias": False}), "extra_options.'QuantizeBias'. cannot be False: biases become 32-bit integers"),
    (dict(extra_options={"ActivationSymetric": True}), "has no 'ActivationSymetric'; did you mean 'ActivationSymmetric'"),
    (dict(extra_options={"TensorQuantOverrides": {"t": [{}, {}]}}), "has 2 entries"),
    (dict(extra_options={"TensorQuantOverrides": {"t": [{"reduce_range": True}]}}), "has 'reduce_range'"),
]


@pytest.mark.parametrize("arguments, text", STATIC_REFUSED, ids=[text for _, text in STATIC_REFUSED])
def test_what_tenon_does_not_have_is_an_error(asked, arguments, text):
    with pytest.raises(tenon.ArgumentError, match=text):
        ours.quantize_static(linear(), "never written", **{"calibration_data_reader": Reader(), **arguments})
    assert not asked


WEIGHTS_REFUSED = [
    (lambda: matmul_nbits_quantizer.DefaultWeightOnlyQuantConfig(accuracy_level=4), "accuracy_level cannot be 4"),
    (lambda: matmul_nbits_quantizer.DefaultWeightOnlyQuantConfig(channel_wised_quantize=True), "channel_wised_quantize cannot be True"),
    (lambda: matmul_nbits_quantizer.GPTQWeightOnlyQuantConfig(), "calibration_data_reader is missing"),
    (lambda: matmul_nbits_quantizer.GPTQWeightOnlyQuantConfig(Reader(), actorder=True), "actorder cannot be True"),
    (lambda: matmul_nbits_quantizer.RTNWeightOnlyQuantConfig(ratios={"a": 1}), "ratios cannot be"),
    (lambda: matmul_nbits_quantizer.MatMulNBitsQuantizer(linear(), bits=3).process(), "bits cannot be 3"),
]


@pytest.mark.parametrize("make, text", WEIGHTS_REFUSED, ids=[text for _, text in WEIGHTS_REFUSED])
def test_what_tenon_does_not_have_of_weights_is_an_error(make, text):
    with pytest.raises(tenon.ArgumentError, match=text):
        make()


@pytest.mark.parametrize("arguments, text", [(dict(verbose=3), "verbose cannot be 3"), (dict(input_model=None), "input_model and output_model_path are needed"),
                                             (dict(colour=1), "has no argument 'colour'")])
def test_what_preparing_does_not_have_is_an_error(arguments, text):
    with pytest.raises(tenon.ArgumentError, match=text):
        ours.quant_pre_process(**{"input_model": linear(), "output_model_path": "never written", **arguments})


@pytest.mark.parametrize("options", [{}, {"skip_optimization": True}, {"save_as_external_data": True, "external_data_size_threshold": 8}])
def test_a_prepared_model_computes_the_same(tmp_path, options):
    path = tmp_path / "prepared.onnx"
    ours.quant_pre_process(linear(), path, **options)
    x = np.array([[1, 2, 3]], np.float32)
    np.testing.assert_array_equal(tenon.load(path)(x)["y"], tenon.load(linear())(x)["y"])
    assert len(list(tmp_path.iterdir())) == (2 if "save_as_external_data" in options else 1)


def error_of(path):
    """Of y, relative to its largest value in float."""
    x = Reader().get_next()["x"]
    expected = tenon.load(linear())(x)["y"]
    return np.abs(tenon.load(path)(x)["y"] - expected).max() / np.abs(expected).max()


def write_blocks(path, **options):
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(linear(), block_size=16, **options)
    quantizer.process()
    assert quantizer.model.model.graph.node
    quantizer.model.save_model_to_file(str(path))


WAYS = {
    "static": (lambda path: ours.quantize_static(linear(), path, Reader()), "QuantizeLinear"),
    "per channel": (lambda path: ours.quantize_static(linear(), path, Reader(), per_channel=True, activation_type=ours.QuantType.QUInt8), "QuantizeLinear"),
    "dynamic": (lambda path: ours.quantize_dynamic(linear(), path), "DynamicQuantizeLinear"),
    "blocks": (write_blocks, "com.microsoft.MatMulNBits"),
    "blocks of 8 bits": (lambda path: write_blocks(path, bits=8), "com.microsoft.MatMulNBits"),
    "symmetric blocks": (lambda path: write_blocks(path, is_symmetric=True, quant_format=ours.QuantFormat.QDQ), "DequantizeLinear"),
    "gptq": (lambda path: write_blocks(path, algo_config=matmul_nbits_quantizer.GPTQWeightOnlyQuantConfig(Reader())), "com.microsoft.MatMulNBits"),
}


@pytest.mark.parametrize("way", WAYS)
def test_quantized_models_compute_nearly_the_same(tmp_path, way):
    write, operator = WAYS[way]
    path = tmp_path / "quantized.onnx"
    write(path)
    assert operator in {use.name for use in tenon.inspect(path).operators}
    assert error_of(path) < 0.05


WITHOUT_ONNXRUNTIME = """
import tenon.onnxruntime
from tenon.onnxruntime import _install
_install._Tools.NAMES = ()  # as where it is not installed
tenon.onnxruntime.install()
import onnxruntime.quantization
from onnxruntime.quantization import matmul_nbits_quantizer, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
assert "/tenon/" in onnxruntime.quantization.__file__ and "/tenon/" in matmul_nbits_quantizer.__file__
quant_pre_process({path!r}, {path!r} + ".prepared.onnx")
quantize_dynamic({path!r} + ".prepared.onnx", {path!r} + ".quantized.onnx")
print("done")
"""


def test_without_onnxruntime_it_stands_in(tmp_path):
    (tmp_path / "m.onnx").write_bytes(linear())
    code = WITHOUT_ONNXRUNTIME.format(path=str(tmp_path / "m.onnx"))
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "done\n"
    assert error_of(tmp_path / "m.onnx.quantized.onnx") < 0.05
