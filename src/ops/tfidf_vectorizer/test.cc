#include "op_test.h"

namespace tenon {
namespace {

// 1-grams 2, 3, 4 and 2-grams 5 6, 7 8.
OpTest vectorizer(const char* mode, int64_t skips) {
  OpTest test("TfIdfVectorizer");
  test.attribute("mode", mode)
      .attribute("min_gram_length", 1)
      .attribute("max_gram_length", 2)
      .attribute("max_skip_count", skips)
      .attribute("ngram_counts", {0, 3})
      .attribute("ngram_indexes", {4, 0, 1, 2, 3});
  return test;
}
const std::vector<int64_t> pool{2, 3, 4, 5, 6, 7, 8};

TEST(TfIdfVectorizer, Modes) {
  auto test = [](const char* mode) {
    OpTest result = vectorizer(mode, 1);
    result.attribute("pool_int64s", pool).attribute("weights", {1.0f, 10.0f, 100.0f, 1000.0f, 10000.0f});
    result.input<int64_t>({8}, {2, 3, 3, 5, 6, 7, 5, 8});
    return result;
  };
  test("TF").expect<float>({5}, {2, 0, 1, 1, 1}).run();
  test("IDF").expect<float>({5}, {10, 0, 1000, 10000, 1}).run();
  test("TFIDF").expect<float>({5}, {20, 0, 1000, 10000, 1}).run();
}

TEST(TfIdfVectorizer, TypesAndShapes) {
  vectorizer("TF", 0)
      .attribute("pool_int64s", pool)
      .input<int32_t>({2, 2}, {5, 6, 3, 3})
      .expect<float>({2, 5}, {0, 0, 1, 0, 0, 2, 0, 0, 0, 0})
      .run();
  vectorizer("TF", INT64_MAX)
      .attribute("pool_strings", std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g"})
      .input<std::string>({4}, {"d", "x", "e", "a"})
      .expect<float>({5}, {0, 0, 1, 0, 1})
      .run();
  vectorizer("TF", 0)
      .attribute("pool_int64s", pool)
      .input<int64_t>({2, 0}, {})
      .expect<float>({2, 5}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
      .run();
}

TEST(TfIdfVectorizer, Errors) {
  auto has = [](OpTest& test, const char* text) {
    test.input<int64_t>({1}, {1});
    std::string error = test.error();
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  has(vectorizer("XF", 0).attribute("pool_int64s", pool), "mode is 'XF'");
  has(vectorizer("TF", -1).attribute("pool_int64s", pool), "max_skip_count -1");
  has(vectorizer("TF", 0).attribute("weights", {1.0f, 1.0f, 1.0f, 1.0f, 1.0f}),
      "one of pool_strings and pool_int64s must be given");
  has(vectorizer("TF", 0).attribute("pool_strings", std::vector<std::string>(7)),
      "the pool has strings, the input has int64");
  has(vectorizer("TF", 0).attribute("pool_int64s", {1, 2}), "must be positions in the pool of 2");
  has(vectorizer("TF", 0).attribute("pool_int64s", {1, 2, 3, 4}), "no multiple of 2");
  has(vectorizer("TF", 0).attribute("pool_int64s", {1, 2, 3, 4, 5, 6, 7, 8, 9}), "more n-grams than ngram_indexes");
  has(vectorizer("TF", 0).attribute("pool_int64s", pool).attribute("weights", {1.0f}), "1 weights for 5");
}

}  // namespace
}  // namespace tenon
