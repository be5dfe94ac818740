"""Operators of ai.onnx.ml."""
import numpy as np
from onnx import TensorProto, helper

from .case import ML, Case, f, i64, ints, text


def forest(count, depth, features, classes=0):
    """Attributes of a forest of full trees, as TreeEnsembleRegressor and TreeEnsembleClassifier have them."""
    rng = np.random.default_rng(1)
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    tree = [(t, n) for t in range(count) for n in range(nodes)]
    leaves = [(t, n) for t, n in tree if n >= inner]
    kind = "class" if classes else "target"
    attributes = {
        "nodes_treeids": [t for t, _ in tree], "nodes_nodeids": [n for _, n in tree],
        "nodes_modes": ["BRANCH_LEQ" if n < inner else "LEAF" for _, n in tree],
        "nodes_featureids": rng.integers(0, features, len(tree)).tolist(), "nodes_values": rng.uniform(-1, 1, len(tree)).tolist(),
        "nodes_truenodeids": [2 * n + 1 if n < inner else 0 for _, n in tree],
        "nodes_falsenodeids": [2 * n + 2 if n < inner else 0 for _, n in tree],
        f"{kind}_treeids": [t for t, _ in leaves], f"{kind}_nodeids": [n for _, n in leaves],
        f"{kind}_ids": [i % max(1, classes) for i in range(len(leaves))], f"{kind}_weights": rng.uniform(-1, 1, len(leaves)).tolist(),
    }
    return attributes | ({"classlabels_int64s": list(range(classes)), "post_transform": "SOFTMAX"} if classes else {"n_targets": 1})


def ensemble(count, depth, features):
    """The same as TreeEnsemble has it: inner nodes and leaves apart."""
    rng = np.random.default_rng(1)
    inner, leaves = 2**depth - 1, 2**depth
    bottom = 2 ** (depth - 1) - 1  # the first inner node whose children are leaves
    children = [(2 * n + 1, 2 * n + 2, 0) if n < bottom else (2 * n + 1 - inner, 2 * n + 2 - inner, 1) for n in range(inner)]
    place = [(t * leaves if leaf else t * inner, a, b, leaf) for t in range(count) for a, b, leaf in children]
    total = count * inner
    return {
        "tree_roots": [t * inner for t in range(count)], "n_targets": 1, "nodes_featureids": rng.integers(0, features, total).tolist(),
        "nodes_splits": helper.make_tensor("splits", TensorProto.FLOAT, [total], rng.uniform(-1, 1, total)),
        "nodes_modes": helper.make_tensor("modes", TensorProto.UINT8, [total], [0] * total),
        "nodes_truenodeids": [start + a for start, a, _, _ in place], "nodes_falsenodeids": [start + b for start, _, b, _ in place],
        "nodes_trueleafs": [leaf for *_, leaf in place], "nodes_falseleafs": [leaf for *_, leaf in place],
        "leaf_targetids": [0] * (count * leaves), "leaf_weights": helper.make_tensor("weights", TensorProto.FLOAT, [count * leaves], rng.uniform(-1, 1, count * leaves)),
    }


def support_vectors(count, features, kernel="RBF"):
    rng = np.random.default_rng(2)
    return {"kernel_type": kernel, "kernel_params": [0.1, 0.0, 3.0], "rho": [0.2], "coefficients": rng.uniform(-1, 1, count).tolist(),
            "support_vectors": rng.uniform(-1, 1, count * features).tolist()}


def rows(count, features=30):
    return f(count, features, low=-1, high=1)


WORDS = [f"word {i}" for i in range(97)]
LINEAR = {"coefficients": [0.1] * 90, "intercepts": [0.1] * 3, "classlabels_ints": [0, 1, 2]}

CASES = [Case(operator, f"{count} rows", [rows(count)], attributes, outputs, version, ML) for operator, attributes, outputs, version in [
    ("TreeEnsembleRegressor", forest(100, 6, 30), 1, 3), ("TreeEnsembleClassifier", forest(90, 6, 30, 3), 2, 3), ("TreeEnsemble", ensemble(100, 6, 30), 1, 5),
] for count in [1, 10, 1000, 10000]]
CASES += [
    Case("TreeEnsembleRegressor", "1 row, 500 deep trees", [rows(1)], forest(500, 9, 30), 1, 3, ML),
    Case("TreeEnsembleRegressor", "10000 rows, 500 deep trees", [rows(10000)], forest(500, 9, 30), 1, 3, ML),
    Case("TreeEnsembleClassifier", "two classes, 10000 rows", [rows(10000)], forest(100, 5, 30, 2), 2, 3, ML),
    Case("SVMRegressor", "", [rows(200)], support_vectors(300, 30) | {"n_supports": 300}, 1, 1, ML),
    Case("SVMRegressor", "one row", [rows(1)], support_vectors(2000, 30) | {"n_supports": 2000}, 1, 1, ML),
    Case("SVMClassifier", "", [rows(200)], support_vectors(300, 30) | {"vectors_per_class": [150, 150], "classlabels_ints": [0, 1]}, 2, 1, ML),
    Case("SVMClassifier", "polynomials", [rows(200)], support_vectors(300, 30, "POLY") | {"vectors_per_class": [150, 150], "classlabels_ints": [0, 1]}, 2, 1, ML),
    Case("LinearClassifier", "", [rows(2000)], LINEAR | {"post_transform": "SOFTMAX"}, 2, 1, ML), Case("LinearClassifier", "10000 rows, no softmax", [rows(10000)], LINEAR, 2, 1, ML),
    Case("LinearRegressor", "", [rows(2000)], {"coefficients": [0.1] * 30, "intercepts": [0.1]}, 1, 1, ML),
    Case("Scaler", "", [rows(2000)], {"offset": [0.1] * 30, "scale": [2.0] * 30}, 1, 1, ML), Case("Scaler", "int64", [i64(2000, 30)], {"offset": [0.1] * 30, "scale": [2.0] * 30}, 1, 1, ML),
    *[Case("Normalizer", norm, [rows(2000)], {"norm": norm}, 1, 1, ML) for norm in ["L1", "L2", "MAX"]],
    Case("Imputer", "", [rows(2000)], {"imputed_value_floats": [0.5], "replaced_value_float": 0.0}, 1, 1, ML), Case("Binarizer", "", [rows(2000)], {"threshold": 0.5}, 1, 1, ML),
    Case("OneHotEncoder", "", [i64(2000, high=19)], {"cats_int64s": list(range(20))}, 1, 1, ML), Case("OneHotEncoder", "strings", [text(2000)], {"cats_strings": WORDS}, 1, 1, ML),
    Case("ArrayFeatureExtractor", "", [rows(2000), ints(*range(0, 30, 2))], {}, 1, 1, ML),
    Case("LabelEncoder", "", [i64(20000, high=99)], {"keys_int64s": list(range(100)), "values_floats": [0.5] * 100}, 1, 4, ML),
    Case("LabelEncoder", "strings", [text(5000)], {"keys_strings": WORDS, "values_int64s": list(range(97))}, 1, 4, ML),
    Case("LabelEncoder", "to strings", [i64(5000, high=96)], {"keys_int64s": list(range(97)), "values_strings": WORDS}, 1, 4, ML),
    Case("CategoryMapper", "", [text(5000)], {"cats_strings": WORDS, "cats_int64s": list(range(97))}, 1, 1, ML),
    Case("CategoryMapper", "to strings", [i64(5000, high=96)], {"cats_strings": WORDS, "cats_int64s": list(range(97))}, 1, 1, ML),
    Case("FeatureVectorizer", "", [rows(2000, 10), rows(2000, 20)], {"inputdimensions": [10, 20]}, 1, 1, ML),
    Case("ZipMap", "", [rows(2000, 3)], {"classlabels_int64s": [0, 1, 2]}, 1, 1, ML),
]
