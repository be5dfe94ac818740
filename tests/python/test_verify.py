"""tenon.verify finds what an export got wrong, and says where it starts."""
import re

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper
from small_models import add, linear, linear_reference, model, value


def x(rows=3):
    return np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)


def scaled_rows(baked):
    """y = x * w, where w was made for `baked` rows at most: a size that an export baked in. x is [batch, 3]."""
    nodes = [helper.make_node("Shape", ["x"], ["n"], end=1),
             helper.make_node("Slice", ["w", "zero", "n"], ["part"]), helper.make_node("Mul", ["x", "part"], ["y"])]
    weights = np.ones((64, 1), np.float32)
    weights[baked:] = 1.5
    return model(nodes, [value("x", TensorProto.FLOAT, ["batch", 3])], [value("y", TensorProto.FLOAT, ["batch", 3])],
                 {"w": weights, "zero": np.array([0], np.int64)})


def test_a_faithful_model_agrees_at_every_size():
    result = tenon.verify(linear_reference, linear(), {"x": x()})
    assert result and not result.mismatches and not result.skipped
    assert [sizes["batch"] for sizes in result.agreed] == [3, 1, 2, 7]
    assert "agrees with batch=3; batch=1; batch=2; batch=7" in str(result)
    assert tenon.verify(linear_reference, linear())
    tenon.testing.assert_same(linear_reference, linear(), {"x": x()})


@pytest.mark.parametrize("baked, starts", [(3, 4), (4, 5), (5, 6), (6, 7)])
def test_a_size_that_was_baked_in_is_found_where_it_starts(baked, starts):
    result = tenon.verify(lambda x: x, scaled_rows(baked), {"x": np.ones((2, 3), np.float32)})
    (mismatch,) = result.mismatches
    assert not result and mismatch.output == "y" and mismatch.dim == "batch"
    assert (mismatch.starts_at, mismatch.agrees_at) == (starts, starts - 1)
    assert mismatch.max_absolute == 0.5 and mismatch.max_relative == 0.5 and mismatch.index[0] == baked
    assert (mismatch.actual, mismatch.expected) == (1.5, 1.0)
    text = str(result)
    assert f"starts at batch = {starts}; {starts - 1} agrees" in text and "next: " in text and "'batch' baked in" in text
    with pytest.raises(AssertionError, match=f"output 'y': 3 of {3 * starts} elements differ, by 0.5 at most"):
        tenon.testing.assert_same(lambda x: x, scaled_rows(baked), {"x": np.ones((2, 3), np.float32)})


def test_a_model_that_fails_where_the_source_does_not():
    fixed = model([helper.make_node("Reshape", ["x", "shape"], ["y"])], [value("x", TensorProto.FLOAT, ["batch", 3])],
                  [value("y", TensorProto.FLOAT, None)], {"shape": np.array([1, 3], np.int64)})
    result = tenon.verify(lambda x: x, fixed, {"x": x(1)})
    (mismatch,) = result.mismatches
    assert mismatch.output == "" and mismatch.starts_at == 2 and mismatch.agrees_at == 1
    assert "the model fails" in str(result) and "Reshape" in mismatch.reason


def test_each_output_has_its_own_start():
    """y differs from 4 rows on, z from 6 on."""
    nodes = [helper.make_node("Shape", ["x"], ["n"], end=1)]
    for name in "yz":
        nodes += [helper.make_node("Slice", ["w" + name, "zero", "n"], ["part" + name]),
                  helper.make_node("Mul", ["x", "part" + name], [name])]
    weights = {"w" + name: np.where(np.arange(64) < baked, 1, 2).astype(np.float32) for name, baked in (("y", 3), ("z", 5))}
    two = model(nodes, [value("x", TensorProto.FLOAT, ["n"])], [value(name, TensorProto.FLOAT, ["n"]) for name in "yz"],
                {**weights, "zero": np.array([0], np.int64)})
    result = tenon.verify(lambda x: (x, x), two, {"x": np.ones(2, np.float32)})
    assert [(m.output, m.starts_at, m.agrees_at) for m in result.mismatches] == [("y", 4, 3), ("z", 6, 5)]
    from_the_first = tenon.verify(lambda x: (x, x), two, {"x": np.ones(8, np.float32)})
    assert [(m.output, m.starts_at) for m in from_the_first.mismatches] == [("y", None), ("z", None)]
    assert str(from_the_first).count("next: ") == 1


def test_a_size_that_must_be_that_of_the_export():
    fixed = model([helper.make_node("Reshape", ["x", "shape"], ["y"])], [value("x", TensorProto.FLOAT, ["batch", "n"])],
                  [value("y", TensorProto.FLOAT, None)], {"shape": np.array([3, -1], np.int64)})
    result = tenon.verify(lambda x: x, fixed, {"x": np.ones((3, 6), np.float32)})
    (mismatch,) = result.mismatches
    assert mismatch.output == "y" and (mismatch.dim, mismatch.starts_at, mismatch.agrees_at) == ("batch", 1, 3)
    assert mismatch.differs_at == (1, 2, 7)
    text = str(result)
    assert "starts at batch = 1 already; 3 agrees" in text and "batch = 1, 2, 7 differ" in text and "'batch' baked in" in text
    assert [sizes["n"] for sizes in result.agreed] == [6, 1, 3, 8, 17]


def test_sizes_that_are_too_small_are_not_called_baked_in():
    ramp = model([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2])],
                 [value("x", TensorProto.FLOAT, [1, 1, "width"])], [value("y", TensorProto.FLOAT, None)])

    def padded(x):
        return np.max(x[..., :max(x.shape[2] // 2, 1) * 2].reshape(1, 1, max(x.shape[2] // 2, 1), -1), axis=3)
    result = tenon.verify(padded, ramp, {"x": np.ones((1, 1, 6), np.float32)})
    (mismatch,) = result.mismatches
    assert (mismatch.starts_at, mismatch.agrees_at, mismatch.differs_at) == (1, 3, (1,))
    assert "only small sizes of 'width' differ" in str(result) and "baked" not in str(result)


def test_dimensions_without_a_name_are_dynamic_too():
    def unnamed(node):
        tensors = [value(name, TensorProto.FLOAT, [None, 3]) for name in ("a", "b", "y")]
        return model([node], tensors[:2], tensors[2:])
    both = unnamed(helper.make_node("Add", ["a", "b"], ["y"]))
    inputs = {name: np.ones((4, 3), np.float32) for name in "ab"}
    for given in (inputs, None):
        result = tenon.verify(lambda a, b: a + b, both, given)
        assert result and not result.skipped and {sizes["a[0]"] for sizes in result.agreed} >= {1, 2, 7}
    # Other sizes make other axes: these do not go together.
    result = tenon.verify(lambda a, b: a + b, both, {"a": inputs["a"], "b": inputs["b"][:1]}, sizes={"b[0]": [2]})
    assert result.agreed == [{"a[0]": 4, "b[0]": 1}] and "b[0]=2" in str(result)


def test_sizes_that_the_source_does_not_take_are_named():
    def even_rows_only(left, right):
        if left.shape[1] % 2:
            raise ValueError("width must be even")
        return left + right
    inputs = {"left": np.ones((2, 4), np.float32), "right": np.ones((2, 4), np.float32)}
    result = tenon.verify(even_rows_only, add(), inputs)
    assert result and [sizes["width"] for sizes, _ in result.skipped] == [1, 3, 17]
    assert "not compared with batch=2, width=17: the source does not take it: ValueError: width must be even" in str(result)


def test_a_source_that_does_not_take_the_inputs_at_all_is_the_callers_mistake():
    def broken(x):
        raise KeyError("mistake")
    with pytest.raises(KeyError, match="mistake"):
        tenon.verify(broken, linear(), {"x": x()})


def test_a_wrong_source_differs_from_the_first_size_on():
    result = tenon.verify(lambda x: (linear_reference(x)[0], linear_reference(x)[0]), linear(), {"x": x()})
    (mismatch,) = result.mismatches
    assert mismatch.output == "z" and mismatch.starts_at is None and "module.eval()" in str(result)


@pytest.mark.parametrize("wrong, reason", [
    (lambda y, z: (y[:, :1], z), r"shape \[3, 2\] instead of \[3, 1\]"),
    (lambda y, z: (y * np.nan, z), "6 of 6 elements differ"),
    (lambda y, z: (y + 1e-2, z), "by 0.01 at most")])
def test_how_far_outputs_are_apart(wrong, reason):
    result = tenon.verify(lambda x: wrong(*linear_reference(x)), linear(), {"x": x()}, sizes={})
    (mismatch,) = result.mismatches
    assert mismatch.output == "y" and re.search(reason, mismatch.reason)


def test_tolerances_are_the_callers():
    def close(x):
        y, z = linear_reference(x)
        return y + 1e-2, z
    assert not tenon.verify(close, linear(), {"x": x()})
    assert tenon.verify(close, linear(), {"x": x()}, atol=2e-2)


def test_a_rewrite_that_changes_results_is_blamed():
    """Folding a BatchNormalization into a convolution rounds otherwise; with a tolerance of 0 that is a mismatch."""
    numbers = np.random.default_rng(0)
    weights = {"w": numbers.standard_normal((4, 3, 3, 3)).astype(np.float32)}
    weights |= {name: numbers.uniform(0.5, 2, 4).astype(np.float32) for name in ("scale", "bias", "mean", "variance")}
    folded = model([helper.make_node("Conv", ["x", "w"], ["c"]),
                    helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["y"])],
                   [value("x", TensorProto.FLOAT, [1, 3, 8, 8])], [value("y", TensorProto.FLOAT, None)], weights)
    plain = tenon.load(folded, level="none")
    assert tenon.verify(plain, folded)
    result = tenon.verify(plain, folded, rtol=0, atol=0)
    assert not result and "without optimising (level='none') it agrees, so a rewrite is to blame" in str(result)


def test_nan_and_infinity_are_equal_to_themselves():
    log = model([helper.make_node("Log", ["x"], ["y"])], [value("x", TensorProto.FLOAT, ["n"])],
                [value("y", TensorProto.FLOAT, ["n"])])

    def reference(x):
        with np.errstate(all="ignore"):
            return np.log(x)
    numbers = np.array([-1, 0, 1, np.inf], np.float32)
    assert tenon.verify(reference, log, numbers)
    assert not tenon.verify(lambda x: np.where(x == 0, 0, reference(x)), log, numbers)


def test_another_model_is_a_source_too(tmp_path):
    (tmp_path / "m.onnx").write_bytes(linear())
    for source in (linear(), tmp_path / "m.onnx", tenon.load(linear())):
        assert tenon.verify(source, linear())
    assert not tenon.verify(scaled_rows(64), scaled_rows(4))


def test_sources_get_inputs_by_name_or_in_order():
    inputs = {"right": np.full((1, 2), 2, np.float32), "left": np.ones((1, 2), np.float32)}
    assert tenon.verify(lambda right, left: left + 0 * right + 2, add(), inputs, sizes={})
    assert tenon.verify(lambda a, b: {"sum": a + b}, add(), list(inputs.values()), sizes={})
    assert tenon.verify(lambda **named: named["left"] + named["right"], add(), inputs, sizes={})
    assert tenon.verify(lambda a, *others, **named: a + others[0], add(), inputs, sizes={})
    with pytest.raises(ValueError, match="1 inputs were given, the model has 2: left, right"):
        tenon.verify(lambda a, b: a + b, add(), [np.ones((1, 2), np.float32)])
    with pytest.raises(ValueError, match="the source gave 1 outputs, the model has 2: y, z"):
        tenon.verify(lambda x: x, linear(), x())
    with pytest.raises(TypeError, match="the source is a int"):
        tenon.verify(3, linear(), x())


def test_outputs_within_others_are_found():
    three = model([helper.make_node(op, ["x"], [op]) for op in ("Neg", "Abs", "Sign")],
                  [value("x", TensorProto.FLOAT, ["n"])], [value(op, TensorProto.FLOAT, ["n"]) for op in ("Neg", "Abs", "Sign")])
    assert tenon.verify(lambda x: (-x, (np.abs(x), [np.sign(x)])), three)
    assert not tenon.verify(lambda x: (-x, (np.sign(x), [np.abs(x)])), three)


def test_sizes_can_be_given():
    result = tenon.verify(linear_reference, linear(), {"x": x()}, sizes={"batch": [4, 9]})
    assert [sizes["batch"] for sizes in result.agreed] == [3, 4, 9]
    with pytest.raises(ValueError, match="no dynamic dimension 'rows'; it has .'batch'."):
        tenon.verify(linear_reference, linear(), {"x": x()}, sizes={"rows": [1]})


class Estimator:
    """What scikit-learn's classifiers look like."""
    classes_ = np.array(["no", "yes"])

    def predict(self, rows):
        return self.classes_[(rows[:, 0] > 0).astype(int)]

    def predict_proba(self, rows):
        yes = 1 / (1 + np.exp(-rows[:, 0]))
        return np.stack([1 - yes, yes], axis=1)


def classifier(with_maps):
    """A LinearClassifier as exporters of scikit-learn write it."""
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
                              coefficients=[-1.0, 0.0, 0.0, 1.0, 0.0, 0.0], intercepts=[0.0, 0.0],
                              classlabels_strings=["no", "yes"], multi_class=0, post_transform="NONE"),
             helper.make_node("Mul", ["scores", "half"], ["halves"]),
             helper.make_node("Softmax", ["halves"], ["matrix" if with_maps else "probabilities"], axis=1)]
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
    output = value("probabilities", TensorProto.FLOAT, ["n", 2])
    if with_maps:
        nodes.append(helper.make_node("ZipMap", ["matrix"], ["probabilities"], domain="ai.onnx.ml",
                                      classlabels_strings=["no", "yes"]))
        output = helper.make_value_info("probabilities", maps)
    half = helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])
    graph = helper.make_graph(nodes, "graph", [value("x", TensorProto.FLOAT, ["n", 3])],
                              [value("label", TensorProto.STRING, ["n"]), output], [half])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("with_maps", [False, True])
def test_estimators_of_scikit_learn(with_maps):
    assert tenon.verify(Estimator(), classifier(with_maps), x(5))

    class Wrong(Estimator):
        def predict_proba(self, rows):
            return super().predict_proba(rows)[:, ::-1]
    (mismatch,) = tenon.verify(Wrong(), classifier(with_maps), x(5)).mismatches
    assert mismatch.output == "probabilities"
