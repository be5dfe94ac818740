"""Text."""
import numpy as np
from draw import WORDS


def string_concat(case):
    d = case.draw
    shape = d.shape()
    case.tensor("X", d.broadcast(shape))
    case.tensor("Y", shape)


def string_normalizer(case):
    d = case.draw
    words = [d.choice(["Monday", "tuesday", "FRIDAY", "x", "ÄÖ"]) for _ in range(d.integer(1, 5))]
    case.set("X", np.array([words] if d.chance(0.3) else words, dtype=object))
    case.maybe("case_change_action", d.choice(["LOWER", "UPPER", "NONE"]))
    case.maybe("is_case_sensitive", d.integer(0, 1))
    case.maybe("stopwords", d.choice([["monday", "x"], ["FRIDAY"], ["Monday", "tuesday", "FRIDAY", "x"]]))
    case.maybe("locale", d.choice(["en_US", "en_US.UTF-8"]), 0.2)


def regex(case):
    d = case.draw
    case.tensor("X", d.shape())
    case.set("pattern", d.choice(["[a-z]+", "d.g", "(?i)DOG|cat", r"-?\d+(\.\d*)?", ".*", "(a|b)*", r"\w* \w*", "[^a]"]))


def string_split(case):
    d = case.draw
    texts = ["a b", " a  b ", "", "a,b,,c", ",", "one", "x--y--", "--", "a\tb\nc", "ä ö"]
    shape = d.shape(high=3)
    case.set("X", np.array([d.choice(texts) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape))
    case.maybe("delimiter", d.choice(["", ",", "--", " ", "b"]))
    case.maybe("maxsplit", d.integer(0, 3), 0.4)
    case.outputs = 2


def tfidf(case):
    d = case.draw
    longest = d.integer(1, 3)
    x = case.tensor("X", d.choice([(6,), (2, 5), (1,)]), 0, 5)
    grams = {1: [[i] for i in range(4)], 2: [[0, 1], [2, 2], [3, 1]], 3: [[0, 1, 2], [2, 2, 2]]}
    pool, starts, count = [], [], 0
    for length in range(1, longest + 1):
        starts.append(len(pool))
        pool += [word for gram in grams[length] for word in gram]
        count += len(grams[length])
    if x.dtype == object:
        case.set("pool_strings", [WORDS[i] for i in pool])
        x[...] = np.array(WORDS[:5], dtype=object)[d.rng.integers(0, 5, x.shape)]
    else:
        case.set("pool_int64s", pool)
    case.set("ngram_counts", starts)
    case.set("ngram_indexes", [int(i) for i in d.rng.permutation(count)] if d.chance() else list(range(count)))
    case.set("min_gram_length", d.integer(1, longest))
    case.set("max_gram_length", longest)
    case.set("max_skip_count", d.integer(0, 2))
    case.set("mode", d.choice(["TF", "IDF", "TFIDF"]))
    if d.chance():
        case.set("weights", [float(w) for w in np.round(d.rng.uniform(0.5, 2, count), 3)])


RECIPES = {"StringConcat": string_concat, "StringNormalizer": string_normalizer, "StringSplit": string_split, "RegexFullMatch": regex,
           "TfIdfVectorizer": tfidf}
