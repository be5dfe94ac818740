"""ai.onnx.ml: features, encoders, maps, linear models and support vectors."""
import numpy as np
from draw import DTYPES, WORDS, element_type
from onnx import helper, numpy_helper

TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def floats(d, count, low=-2.0, high=2.0):
    return [float(x) for x in np.round(d.rng.uniform(low, high, count), 3)]


def rows(case, name="X", low=None, high=None, only=None):
    d = case.draw
    return case.tensor(name, (d.integer(1, 6), d.integer(1, 5)), low, high, only)


def labels(case, ints, count):
    """Class labels as numbers or as text."""
    d = case.draw
    if d.chance():
        case.set(ints, [int(i) for i in d.rng.permutation(9)[:count]])
    else:
        case.set("classlabels_strings", [WORDS[int(i)] for i in d.rng.permutation(len(WORDS))[:count]])


def array_feature_extractor(case):
    x = rows(case)
    case.set("Y", case.draw.ints([case.draw.integer(0, x.shape[1] - 1) for _ in range(case.draw.dim())]))


def binarizer(case):
    case.tensor("X", case.draw.shape())
    case.maybe("threshold", case.draw.choice([0.5, 0.0, 2.0]))


def imputer(case):
    d = case.draw
    x = rows(case)
    if case.type("X") in ("float", "double"):
        case.set("imputed_value_floats", floats(d, d.choice([1, x.shape[1]])))
        replaced = d.choice([1.0, 2.0, float("nan")])
        x[d.rng.random(x.shape) < 0.3] = replaced
        case.maybe("replaced_value_float", replaced, 0.8)
    else:
        case.set("imputed_value_int64s", [d.integer(-3, 3) for _ in range(d.choice([1, x.shape[1]]))])
        case.maybe("replaced_value_int64", d.integer(0, 2), 0.8)


def scaler(case):
    d = case.draw
    x = rows(case)
    for name in ("offset", "scale"):
        case.set(name, floats(d, d.choice([1, x.shape[1]])))


def normalizer(case):
    rows(case, low=1, high=5)
    case.maybe("norm", case.draw.choice(["MAX", "L1", "L2"]))


def feature_vectorizer(case):
    d, kind, batch = case.draw, case.type("X"), case.draw.integer(1, 4)
    sizes = [d.integer(1, 4) for _ in range(d.integer(1, 3))]
    for i, size in enumerate(sizes):
        case.set("X", d.tensor(kind, (batch, size)), position=i)
    case.set("inputdimensions", sizes)


def label_encoder(case):
    d = case.draw
    pools = {"strings": np.array(WORDS[:6], dtype=object), "int64s": np.array([0, 1, 2, 3, -1]),
             "floats": np.array([0, 1, 2, 3, np.nan], dtype=np.float32)}
    if case.version == 1:
        case.set("classes_strings", WORDS[:4])
        pool = pools[d.choice(["strings", "int64s"])]
        case.maybe("default_int64", 9)
        case.maybe("default_string", "none")
    else:
        keys, values, count = d.choice(pools), d.choice(pools), 4
        key_list, value_list = pools[keys][d.rng.permutation(len(pools[keys]))[:count]], pools[values][d.rng.integers(0, 4, count)]
        pool = pools[keys]
        if case.version >= 4 and d.chance(0.4):
            kinds = ("double", "int64", "int32", "int16", "float")
            pool = pool.astype(DTYPES[d.choice(kinds[:1] + kinds[4:] if keys == "floats" else kinds[1:4])]) if keys != "strings" else pool
            value_list = value_list if values == "strings" else value_list.astype(DTYPES[d.choice(kinds)])
            case.set("keys_tensor", numpy_helper.from_array(key_list.astype(pool.dtype)))
            case.set("values_tensor", numpy_helper.from_array(value_list))
            if d.chance(0.6):
                case.set("default_tensor", numpy_helper.from_array(value_list[:1]))
        else:
            case.set(f"keys_{keys}", key_list.tolist())
            case.set(f"values_{values}", value_list.tolist())
            name = f"default_{values[:-1]}"
            case.maybe(name, {"default_string": "none", "default_int64": 9, "default_float": 1.5}[name])
    case.set("X", pool[d.rng.integers(0, len(pool), d.shape(low=1, high=2, empty=False))])


def category_mapper(case):
    d, kind = case.draw, case.type("X")
    case.set("cats_strings", WORDS[:4])
    case.set("cats_int64s", [int(i) for i in d.rng.permutation(6)[:4]])
    if kind == "string":
        case.maybe("default_int64", -7)
    else:
        case.maybe("default_string", "none")
    case.tensor("X", d.shape(high=3), 0, 6)


def one_hot_encoder(case):
    d, zeros = case.draw, case.draw.chance(0.7)
    if case.type("X") == "string":
        kinds = WORDS[:d.integer(3, 5)]
        case.set("cats_strings", kinds)
    else:
        kinds = [int(i) for i in d.rng.permutation(7)[:5]]
        case.set("cats_int64s", kinds)
    x = case.tensor("X", d.shape(low=1, high=2, empty=False), 0, 6)
    case.maybe("zeros", int(zeros), 0.5 if zeros else 1.0)
    if not zeros:  # only known categories are allowed
        x[...] = np.array(kinds, dtype=x.dtype)[d.rng.integers(0, len(kinds), x.shape)]


def map_input(case, kinds):
    """A dictionary with keys and values of types that the operator takes; (keys, values)."""
    d = case.draw
    key, content = d.choice(kinds)
    keys = WORDS[:6] if key == "string" else [0, 1, 2, 3, 5, 7]
    chosen = [keys[int(i)] for i in d.rng.permutation(6)[:d.integer(1, 5)]]
    if content == "string":
        values = [d.choice(["1", "2.5", "-3", "7"]) for _ in chosen]
    else:
        values = d.tensor(content, (len(chosen),)).tolist()
    made = dict(zip(chosen, values))
    case.kinds[0] = map_kind(key, content)
    case.types["T1"] = content
    case.set("X", made)
    return key, keys


def map_kind(key, content):
    return helper.make_map_type_proto(element_type(key), helper.make_tensor_type_proto(element_type(content), None))


def cast_map(case):
    d = case.draw
    map_input(case, [("int64", "float"), ("int64", "string")])
    case.maybe("cast_to", d.choice(["TO_FLOAT", "TO_STRING", "TO_INT64"]))
    if d.chance(0.4):
        case.set("map_form", "SPARSE")
        case.set("max_map", d.integer(8, 10))
    else:
        case.maybe("map_form", "DENSE", 0.3)


def dict_vectorizer(case):
    key, keys = map_input(case, [("int64", "double"), ("int64", "float"), ("int64", "string"), ("string", "double"), ("string", "float"),
                                 ("string", "int64")])
    order = [keys[int(i)] for i in case.draw.rng.permutation(len(keys))]
    case.set("string_vocabulary" if key == "string" else "int64_vocabulary", order)


def zip_map(case):
    x = rows(case)
    labels(case, "classlabels_int64s", x.shape[1])


def linear_regressor(case):
    d = case.draw
    x = rows(case, only=("float",))
    targets = d.integer(1, 3)
    case.set("coefficients", floats(d, targets * x.shape[1]))
    case.set("targets", targets)
    if d.chance():
        case.set("intercepts", floats(d, targets))
    case.maybe("post_transform", d.choice(TRANSFORMS), 0.4)


def linear_classifier(case):
    d = case.draw
    x = rows(case, only=("float", "double", "int32", "int64"))
    classes = d.integer(2, 4)
    scores = 1 if classes == 2 and d.chance() else classes
    case.set("coefficients", floats(d, scores * x.shape[1]))
    case.set("intercepts", floats(d, scores))
    labels(case, "classlabels_ints", classes)
    case.maybe("post_transform", d.choice(TRANSFORMS), 0.8)
    case.maybe("multi_class", d.integer(0, 1), 0.3)
    case.outputs = 2


def kernel(case):
    d = case.draw
    case.maybe("kernel_type", d.choice(["LINEAR", "POLY", "RBF", "SIGMOID"]), 0.9)
    case.set("kernel_params", [d.choice([0.3, 0.1]), d.choice([0.0, 0.2]), float(d.integer(1, 3))])
    case.wide = True


def svm_regressor(case):
    d = case.draw
    x = rows(case, only=("float",))
    if d.chance(0.8):
        count = d.integer(1, 4)
        case.set("coefficients", floats(d, count))
        case.set("support_vectors", floats(d, count * x.shape[1]))
        case.set("n_supports", count)
    else:
        case.set("coefficients", floats(d, x.shape[1]))
    case.set("rho", floats(d, 1))
    case.maybe("one_class", d.integer(0, 1), 0.4)
    case.maybe("post_transform", d.choice(TRANSFORMS), 0.4)
    kernel(case)


def svm_classifier(case):
    d = case.draw
    x = rows(case)
    classes = d.integer(2, 4)
    labels(case, "classlabels_ints", classes)
    pairs = classes * (classes - 1) // 2
    if d.chance(0.8):
        counts = [d.integer(1, 2) for _ in range(classes)]
        case.set("vectors_per_class", counts)
        case.set("support_vectors", floats(d, sum(counts) * x.shape[1]))
        case.set("coefficients", floats(d, sum(counts) * (classes - 1)))
        case.set("rho", floats(d, pairs))
        if d.chance(0.5):
            case.set("prob_a", floats(d, pairs, -2, -0.5))
            case.set("prob_b", floats(d, pairs, -0.5, 0.5))
    else:
        case.set("coefficients", floats(d, classes * x.shape[1]))
        case.set("rho", floats(d, 1))
    case.maybe("post_transform", d.choice(TRANSFORMS), 0.5)
    kernel(case)
    case.outputs = 2


RECIPES = {
    "ArrayFeatureExtractor": array_feature_extractor, "Binarizer": binarizer, "Imputer": imputer, "Scaler": scaler, "Normalizer": normalizer,
    "FeatureVectorizer": feature_vectorizer, "LabelEncoder": label_encoder, "CategoryMapper": category_mapper,
    "OneHotEncoder": one_hot_encoder, "CastMap": cast_map, "DictVectorizer": dict_vectorizer, "ZipMap": zip_map,
    "LinearRegressor": linear_regressor, "LinearClassifier": linear_classifier, "SVMRegressor": svm_regressor,
    "SVMClassifier": svm_classifier,
}
