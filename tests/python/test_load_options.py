"""Options of tenon.load for sizes and weights, profiles of single runs, and what there is to choose from."""
import numpy as np
import onnx
import pytest
import tenon
from small_models import linear

X = np.ones((1, 3), np.float32)


def test_sizes_are_fixed():
    model = tenon.load(linear(), sizes={"batch": 4})
    assert model.inputs[0].shape == (4, 3) and model.outputs[0].shape == (4, 2)
    with pytest.raises(tenon.InputError, match="4"):
        model.run(x=X)
    assert tenon.load(linear(), sizes={"nope": 4}).notes == ["the model has no dimension that is called 'nope'"]
    with pytest.raises(tenon.ArgumentError, match="negative"):
        tenon.load(linear(), sizes={"batch": -1})


def test_sizes_are_fixed_by_denotation():
    proto = onnx.load_from_string(linear())
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    assert tenon.load(proto, denoted_sizes={"DATA_BATCH": 2}).outputs[0].shape == (2, 2)


def test_sessions_of_one_file_with_other_sizes_differ(tmp_path):
    (tmp_path / "m.onnx").write_bytes(linear())
    models = [tenon.load(tmp_path / "m.onnx", sizes=sizes) for sizes in ({}, {"batch": 2}, {"batch": 3})]
    assert [model.inputs[0].shape[0] for model in models] == ["batch", 2, 3]


def test_weights_are_given(tmp_path):
    proto = onnx.load_from_string(linear())
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").unlink()
    weights = {"w": np.full((3, 2), 2, np.float32), "b": np.zeros(2, np.float32)}
    assert tenon.load(tmp_path / "m.onnx", initializers=weights).run(x=X)["y"].tolist() == [[6, 6]]
    with pytest.raises(tenon.FileError, match="missing-external-data"):
        tenon.load(tmp_path / "m.onnx", initializers={"w": weights["w"]})
    with pytest.raises(tenon.ModelError, match=r"has shape \[3, 2\], the tensor given for it \[2, 3\]"):
        tenon.load(linear(), initializers={"w": weights["w"].T.copy()})
    with pytest.raises(tenon.Error, match="did you mean 'w'") as caught:
        tenon.load(linear(), initializers={"v": weights["w"]})
    assert (caught.value.code, caught.value.tensor) == ("unknown-name", "v")


def test_fast_precision_says_what_it_rounds():
    full, fast = tenon.load(linear()), tenon.load(linear(), precision="fast")
    rounded = [node for node in fast.placement() if node.kernel.endswith(", bf16")]
    assert bool(rounded) != any("precision 'fast' changes nothing" in note for note in fast.notes)
    np.testing.assert_allclose(fast.run(x=X)["y"], full.run(x=X)["y"], rtol=0.02)
    with pytest.raises(tenon.Error, match="'tenon.precision' takes full or fast, got 'half'"):
        tenon.load(linear(), precision="half")


def test_single_runs_are_profiled():
    model, runs = tenon.load(linear(), level="none"), []
    for _ in range(2):
        model.run(x=X, profile=runs)
    assert len(runs) == 2
    for run in runs:
        assert [step.op_type for step in run.steps] == ["MatMul", "Add", "Neg"]
        assert run.duration_ns >= sum(step.duration_ns for step in run.steps)
        assert all(step.start_ns >= run.start_ns for step in run.steps)


def test_what_there_is_to_choose_from():
    assert "cpu" in tenon.available_providers() and "session.set_denormal_as_zero" in tenon.config_keys()
    for key in tenon.config_keys():
        with pytest.raises(tenon.Error) as caught:
            tenon.load(linear(), config={key: "?"})
        assert "there is no session option" not in str(caught.value)
