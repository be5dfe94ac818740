"""tenon.compile, and models loaded from what it writes."""
import numpy as np
import pytest
import tenon
from small_models import linear, linear_reference

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(linear())
    return path


def test_compiled_models_run(model, tmp_path):
    info = tenon.compile(model, tmp_path / "m.tenon")
    assert info.bytes == (tmp_path / "m.tenon").stat().st_size and info.packed == 1 and info.model == model
    assert info.as_dict() == tenon.check_compiled(tmp_path / "m.tenon").as_dict()
    loaded = tenon.load(tmp_path / "m.tenon")
    assert loaded.notes == [] and [value.name for value in loaded.inputs] == ["x"]
    y, z = linear_reference(X)
    outputs = loaded.run(x=X)
    np.testing.assert_array_equal(outputs["y"], y)
    np.testing.assert_array_equal(outputs["z"], z)
    assert [n.node for n in loaded.placement()] == [n.node for n in tenon.load(model).placement()]


def test_options(model, tmp_path):
    info = tenon.compile(model, tmp_path / "m.tenon", level="none", sizes={"batch": 2})
    assert dict(info.options) == {"level": "none", "sizes": "batch=2"}
    loaded = tenon.load(tmp_path / "m.tenon")
    assert loaded.inputs[0].shape == (2, 3)
    assert loaded.notes == ["the model was compiled with level 'none', sizes 'batch=2'"]
    heard = []
    other = tenon.load(tmp_path / "m.tenon", sizes={"batch": 3}, log=heard.append)
    assert other.inputs[0].shape == (3, 3) and "compiled with sizes 'batch=2', the session asks for 'batch=3'" in heard[0]


def test_stale_and_damaged_files(model, tmp_path):
    tenon.compile(model, tmp_path / "m.tenon")
    content = (tmp_path / "m.tenon").read_bytes()
    model.unlink()
    with pytest.raises(tenon.FileError) as caught:
        tenon.load(tmp_path / "m.tenon", keep=["p"])
    assert caught.value.code == "stale-file" and "tenon compile" in caught.value.hint
    (tmp_path / "cut.tenon").write_bytes(content[:-1])
    with pytest.raises(tenon.FileError) as caught:
        tenon.load(tmp_path / "cut.tenon")
    assert caught.value.code == "damaged-file"
    with pytest.raises(tenon.FileError, match="compiled by 'tenon compile'"):
        tenon.load(content)


def test_onnxruntimes_api_takes_compiled_models(model, tmp_path):
    import tenon.onnxruntime as ort
    tenon.compile(model, tmp_path / "m.tenon")
    session = ort.InferenceSession(str(tmp_path / "m.tenon"))
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], linear_reference(X)[0])
