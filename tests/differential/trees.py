"""Ensembles of random trees, in the three forms that ONNX has for them."""
import numpy as np
from classical import TRANSFORMS, floats, labels, rows
from onnx import numpy_helper

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def features(case):
    """Rows with whole numbers, which comparisons meet, and a missing value now and then."""
    d = case.draw
    x = rows(case)
    if x.dtype.kind == "f" and d.chance(0.4):
        x[d.rng.random(x.shape) < 0.2] = np.nan
    return x


def grow(d, width, modes, depth=0):
    """A tree: None for a leaf, otherwise (feature, mode, value, side of missing values, true branch, false branch)."""
    if depth == 3 or (depth and d.chance(0.4)):
        return None
    value = float(d.integer(-2, 2)) if d.chance() else floats(d, 1)[0]
    return (d.integer(0, width - 1), d.choice(modes), value, d.integer(0, 1), grow(d, width, modes, depth + 1), grow(d, width, modes, depth + 1))


def forest(case, width):
    d = case.draw
    # Runtimes have a shorter way for trees in which all nodes compare alike.
    modes = MODES if d.chance(0.4) else [d.choice(MODES)]
    trees = [grow(d, width, modes) for _ in range(d.integer(1, 3))]
    return trees if d.chance(0.9) else trees + [None]


def set_numbers(case, name, values):
    """As floats, or as a tensor, in the type of the input, where the version has one."""
    if case.version >= 3 and case.types[case.schema.inputs[0].type_str] == "double":
        case.set(f"{name}_as_tensor", numpy_helper.from_array(np.array(values, dtype=np.float64)))
    else:
        case.set(name, values)


def old_ensemble(case, prefix, count):
    """TreeEnsembleRegressor and -Classifier: leaves are nodes too, and give weights to targets."""
    d, nodes, leaves = case.draw, [], []
    for number, tree in enumerate(forest(case, features(case).shape[1])):
        start = len(nodes)

        def add(node):
            at = len(nodes)
            nodes.append(None)
            if node is None:
                nodes[at] = (number, at - start, 0, "LEAF", 0.0, 0, 0, 0)
                for target in d.rng.permutation(count)[:d.integer(1, count) if d.chance(0.3) else 1]:
                    leaves.append((number, at - start, int(target), floats(d, 1)[0]))
            else:
                feature, mode, value, missing, yes, no = node
                nodes[at] = (number, at - start, feature, mode, value, missing, add(yes), add(no))
            return at - start

        add(tree)
    trees, ids, used, modes, values, missing, yes, no = (list(column) for column in zip(*nodes))
    for name, value in (("treeids", trees), ("nodeids", ids), ("featureids", used), ("modes", modes), ("truenodeids", yes), ("falsenodeids", no)):
        case.set(f"nodes_{name}", value)
    set_numbers(case, "nodes_values", values)
    if d.chance(0.2):
        set_numbers(case, "nodes_hitrates", [1.0] * len(nodes))
    case.maybe("nodes_missing_value_tracks_true", missing)
    trees, ids, targets, weights = (list(column) for column in zip(*leaves))
    for name, value in (("treeids", trees), ("nodeids", ids), ("ids", targets)):
        case.set(f"{prefix}_{name}", value)
    set_numbers(case, f"{prefix}_weights", weights)
    if d.chance(0.4):
        set_numbers(case, "base_values", floats(d, count))
    case.maybe("post_transform", d.choice(TRANSFORMS))


def tree_regressor(case):
    count = case.draw.choice([1, 1, 2, 3])
    old_ensemble(case, "target", count)
    case.set("n_targets", count)
    case.maybe("aggregate_function", case.draw.choice(["SUM", "MIN", "MAX", "AVERAGE"]))


def tree_classifier(case):
    count = case.draw.integer(2, 4)
    labels(case, "classlabels_int64s", count)
    old_ensemble(case, "class", count)
    case.outputs = 2


def tree_ensemble(case):
    d, x, targets = case.draw, features(case), case.draw.choice([1, 1, 2, 3])
    roots, nodes, leaves, members = [], [], [], []

    def branch(node):
        """(index, whether it is a leaf)."""
        if node is None:
            leaves.append((d.integer(0, targets - 1), floats(d, 1)[0]))
            return len(leaves) - 1, 1
        at = len(nodes)
        nodes.append(None)
        feature, mode, value, missing, yes, no = node
        number = MODES.index(mode)
        if d.chance(0.1):
            number, value = 6, 0.0
            members.extend([*sorted({float(d.integer(-3, 3)) for _ in range(3)}), float("nan")])
        nodes[at] = (feature, number, value, missing, *branch(yes), *branch(no))
        return at, 0

    for tree in forest(case, x.shape[1]):
        if tree is None:  # one node with the same leaf on both sides
            roots.append(len(nodes))
            leaf = branch(None)
            nodes.append((0, 0, 0.0, 0, *leaf, *leaf))
        else:
            roots.append(branch(tree)[0])
    used, modes, values, missing, yes, yes_leaf, no, no_leaf = (list(column) for column in zip(*nodes))
    tensor = lambda list_, dtype=x.dtype: numpy_helper.from_array(np.array(list_, dtype=dtype))  # noqa: E731
    for name, value in (("tree_roots", roots), ("nodes_featureids", used), ("nodes_truenodeids", yes), ("nodes_trueleafs", yes_leaf),
                        ("nodes_falsenodeids", no), ("nodes_falseleafs", no_leaf), ("n_targets", targets), ("nodes_modes", tensor(modes, np.uint8)),
                        ("nodes_splits", tensor(values)), ("leaf_targetids", [leaf[0] for leaf in leaves]),
                        ("leaf_weights", tensor([leaf[1] for leaf in leaves]))):
        case.set(name, value)
    if members:
        case.set("membership_values", tensor(members))
    case.maybe("nodes_missing_value_tracks_true", missing)
    case.maybe("nodes_hitrates", tensor([1.0] * len(nodes)), 0.2)
    case.maybe("aggregate_function", d.integer(0, 3))
    case.maybe("post_transform", d.integer(0, 4), 0.4)


RECIPES = {"TreeEnsembleRegressor": tree_regressor, "TreeEnsembleClassifier": tree_classifier, "TreeEnsemble": tree_ensemble}
