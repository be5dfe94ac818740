"""ai.onnx.ml, text and signals."""
import numpy as np
from draw import DTYPES, WORDS


def floats(d, count, low=-2.0, high=2.0):
    return [float(x) for x in np.round(d.rng.uniform(low, high, count), 3)]


def rows(case, name="X", low=None, high=None, only=None):
    d = case.draw
    return case.tensor(name, (d.integer(1, 6), d.integer(1, 5)), low, high, only)


def array_feature_extractor(case):
    x = rows(case)
    case.set("Y", case.draw.ints([case.draw.integer(0, x.shape[1] - 1) for _ in range(case.draw.dim())]))


def binarizer(case):
    rows(case)
    case.maybe("threshold", 0.5)


def imputer(case):
    d = case.draw
    x = rows(case)
    if case.type("X") in ("float", "double"):
        case.set("imputed_value_floats", floats(d, d.choice([1, x.shape[1]])))
        case.set("replaced_value_float", 1.0)
    else:
        case.set("imputed_value_int64s", [d.integer(-3, 3) for _ in range(d.choice([1, x.shape[1]]))])
        case.set("replaced_value_int64", 1)


def scaler(case):
    d = case.draw
    x = rows(case)
    for name in ("offset", "scale"):
        case.set(name, floats(d, d.choice([1, x.shape[1]])))


def normalizer(case):
    rows(case, low=1, high=5)
    case.maybe("norm", case.draw.choice(["MAX", "L1", "L2"]))


def label_encoder(case):
    d = case.draw
    kinds = {"strings": WORDS[:6], "int64s": [0, 1, 2, 3, -1], "floats": [0.0, 1.0, 2.0, 3.0]}
    keys, values = d.choice(kinds), d.choice(kinds)
    count = 4
    case.set(f"keys_{keys}", [kinds[keys][int(i)] for i in d.rng.permutation(len(kinds[keys]))[:count]])
    case.set(f"values_{values}", [d.choice(kinds[values]) for _ in range(count)])
    name = {"strings": "string", "int64s": "int64", "floats": "float"}[keys]
    pool = np.array(kinds[keys], dtype=DTYPES[name])
    case.set("X", pool[d.rng.integers(0, len(pool), d.shape(low=1, high=2, empty=False))])


def one_hot_encoder(case):
    d = case.draw
    if case.type("X") == "string":
        case.set("cats_strings", WORDS[:5])
    else:
        case.set("cats_int64s", [0, 1, 2, 3, 5])
    case.tensor("X", d.shape(low=1, high=2, empty=False), 0, 6)
    case.set("zeros", 1)


def linear_regressor(case):
    d = case.draw
    x = rows(case, only=("float",))
    targets = d.integer(1, 3)
    case.set("coefficients", floats(d, targets * x.shape[1]))
    case.set("targets", targets)
    if d.chance():
        case.set("intercepts", floats(d, targets))


def linear_classifier(case):
    d = case.draw
    x = rows(case, only=("float", "int64"))
    classes = d.integer(3, 4)
    case.set("coefficients", floats(d, classes * x.shape[1]))
    case.set("intercepts", floats(d, classes))
    case.set("classlabels_ints", list(range(classes)))
    case.set("post_transform", d.choice(["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]))
    case.outputs = 2


def svm_regressor(case):
    d = case.draw
    x = rows(case, only=("float",))
    count = d.integer(1, 4)
    case.set("coefficients", floats(d, count))
    case.set("support_vectors", floats(d, count * x.shape[1]))
    case.set("n_supports", count)
    case.set("rho", floats(d, 1))
    case.set("kernel_type", d.choice(["LINEAR", "POLY", "RBF", "SIGMOID"]))
    case.set("kernel_params", [0.3, 0.2, 2.0])


def tree(case, prefix):
    """Attributes of one random tree with three inner nodes."""
    d = case.draw
    x = rows(case, only=("float",))
    modes = [d.choice(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"]) for _ in range(3)]
    case.set("nodes_treeids", [0] * 7)
    case.set("nodes_nodeids", list(range(7)))
    case.set("nodes_featureids", [d.integer(0, x.shape[1] - 1) for _ in range(3)] + [0] * 4)
    case.set("nodes_values", floats(d, 3) + [0.0] * 4)
    case.set("nodes_modes", modes + ["LEAF"] * 4)
    case.set("nodes_truenodeids", [1, 3, 5, 0, 0, 0, 0])
    case.set("nodes_falsenodeids", [2, 4, 6, 0, 0, 0, 0])
    case.set(f"{prefix}_treeids", [0] * 4)
    case.set(f"{prefix}_nodeids", [3, 4, 5, 6])
    case.set(f"{prefix}_weights", floats(d, 4))


def tree_regressor(case):
    tree(case, "target")
    case.set("target_ids", [0, 0, 0, 0])
    case.set("n_targets", 1)
    case.maybe("aggregate_function", case.draw.choice(["SUM", "MIN", "MAX", "AVERAGE"]))


def tree_classifier(case):
    d = case.draw
    tree(case, "class")
    case.set("class_ids", [0, 1, 2, d.integer(0, 2)])
    case.set("classlabels_int64s", [0, 1, 2])
    case.set("post_transform", d.choice(["NONE", "SOFTMAX", "LOGISTIC"]))
    case.outputs = 2


def dft(case):
    d = case.draw
    shape = [d.integer(1, 2), d.integer(1, 12), d.integer(1, 2)]
    name = case.schema.inputs[0].name
    onesided = shape[2] == 1 and d.chance()
    case.tensor(name, shape, only=("float", "double"))
    if onesided:
        case.set("onesided", 1)
    elif d.chance(0.4):
        case.set("inverse", 1)
    if case.version < 20:
        case.set("axis", 1)
    else:
        case.set("axis", np.array(1, dtype=np.int64), constant=True)
    case.wide = True


def stft(case):
    d = case.draw
    frame = d.integer(2, 8)
    case.tensor("signal", (d.integer(1, 2), frame + d.integer(0, 12), 1), only=("float", "double"))
    case.set("frame_step", np.array(d.integer(1, 4), dtype=np.int64), constant=True)
    case.set("frame_length", np.array(frame, dtype=np.int64), constant=True)
    case.wide = True


def string_concat(case):
    d = case.draw
    shape = d.shape()
    case.tensor("X", d.broadcast(shape))
    case.tensor("Y", shape)


def string_normalizer(case):
    d = case.draw
    case.set("X", np.array([d.choice(["Monday", "tuesday", "FRIDAY", "x"]) for _ in range(d.integer(1, 5))], dtype=object))
    case.maybe("case_change_action", d.choice(["LOWER", "UPPER", "NONE"]))
    case.maybe("is_case_sensitive", d.integer(0, 1))
    case.maybe("stopwords", ["monday", "x"])


def regex(case):
    d = case.draw
    case.tensor("X", d.shape())
    case.set("pattern", d.choice(["[a-z]+", "d.g", "(?i)DOG|cat", r"-?\d+(\.\d*)?", ".*", "(a|b)*", r"\w* \w*", "[^a]"]))


def tfidf(case):
    d = case.draw
    case.tensor("X", d.choice([(6,), (2, 5)]), 0, 5, only=("int32", "int64"))
    case.set("pool_int64s", [0, 1, 2, 3, 0, 1, 2, 2, 3, 1])
    case.set("ngram_counts", [0, 4])
    case.set("ngram_indexes", [0, 1, 2, 3, 4, 5, 6])
    case.set("min_gram_length", 1)
    case.set("max_gram_length", 2)
    case.set("max_skip_count", d.integer(0, 2))
    case.set("mode", d.choice(["TF", "IDF", "TFIDF"]))
    if d.chance():
        case.set("weights", floats(d, 7, 0.5, 2))


RECIPES = {
    "ArrayFeatureExtractor": array_feature_extractor, "Binarizer": binarizer, "Imputer": imputer, "Scaler": scaler, "Normalizer": normalizer,
    "LabelEncoder": label_encoder, "OneHotEncoder": one_hot_encoder, "LinearRegressor": linear_regressor,
    "LinearClassifier": linear_classifier, "SVMRegressor": svm_regressor, "TreeEnsembleRegressor": tree_regressor,
    "TreeEnsembleClassifier": tree_classifier, "DFT": dft, "STFT": stft, "StringConcat": string_concat,
    "StringNormalizer": string_normalizer, "RegexFullMatch": regex, "TfIdfVectorizer": tfidf,
}
