#include "op_test.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

OpTest ml(const char* op) { return OpTest(op, 5, "ai.onnx.ml"); }

template <typename Key, typename T>
Map map(std::initializer_list<Key> keys, std::initializer_list<T> values) {
  return Map{Tensor(Shape{static_cast<int64_t>(keys.size())}, keys),
             Tensor(Shape{static_cast<int64_t>(values.size())}, values)};
}

TEST(CastMap, Dense) {
  auto test = [](const char* to) {
    OpTest result = ml("CastMap");
    result.attribute("cast_to", to);
    return result;
  };
  const Map numbers = map<int64_t, float>({7, 2}, {1.5f, -2});
  test("TO_FLOAT").input(numbers).expect<float>({1, 2}, {-2, 1.5f}).run();
  test("TO_INT64").input(numbers).expect<int64_t>({1, 2}, {-2, 1}).run();
  test("TO_STRING").input(numbers).expect<std::string>({1, 2}, {"-2.000000", "1.500000"}).run();
  const Map texts = map<int64_t, std::string>({7, -2}, {"1", "20"});
  test("TO_FLOAT").input(texts).expect<float>({1, 2}, {20, 1}).run();
  test("TO_INT64").input(texts).expect<int64_t>({1, 2}, {20, 1}).run();
  test("TO_STRING").input(texts).expect<std::string>({1, 2}, {"20", "1"}).run();
}

TEST(CastMap, Sparse) {
  auto test = [](int64_t size, const char* to) {
    OpTest result = ml("CastMap");
    result.attribute("map_form", "SPARSE").attribute("max_map", size).attribute("cast_to", to);
    result.input(map<int64_t, float>({3, 1}, {30, 10}));
    return result;
  };
  test(5, "TO_FLOAT").expect<float>({1, 5}, {0, 10, 0, 30, 0}).run();
  test(4, "TO_STRING").expect<std::string>({1, 4}, {"0.f", "10.000000", "0.f", "30.000000"}).run();
  EXPECT_NE(test(3, "TO_INT64").error().find("the map has the key 3, max_map allows 0 to 2"), std::string::npos);
}

TEST(DictVectorizer, TypesOfKeysAndValues) {
  auto of_strings = [](Map dictionary) {
    OpTest test = ml("DictVectorizer");
    test.attribute("string_vocabulary", Strings{"z", "y", "x"}).input(std::move(dictionary));
    return test;
  };
  of_strings(map<std::string, int64_t>({"x", "z", "a"}, {1, 2, 3})).expect<int64_t>({1, 3}, {2, 0, 1}).run();
  of_strings(map<std::string, float>({"y"}, {1.5f})).expect<float>({1, 3}, {0, 1.5f, 0}).run();
  of_strings(map<std::string, double>({"y"}, {1.5})).expect<double>({1, 3}, {0, 1.5, 0}).run();
  auto of_ints = [](Map dictionary) {
    OpTest test = ml("DictVectorizer");
    test.attribute("int64_vocabulary", Ints{5, 6}).input(std::move(dictionary));
    return test;
  };
  of_ints(map<int64_t, std::string>({6}, {"a"})).expect<std::string>({1, 2}, {"", "a"}).run();
  of_ints(map<int64_t, float>({6}, {2})).expect<float>({1, 2}, {0, 2}).run();
}

TEST(ZipMap, OneMapForEachRow) {
  ml("ZipMap")
      .attribute("classlabels_strings", Strings{"b", "a"})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect(Sequence{{map<std::string, float>({"b", "a"}, {1, 2}), map<std::string, float>({"b", "a"}, {3, 4})}})
      .run();
  ml("ZipMap")
      .attribute("classlabels_int64s", Ints{7, 8})
      .input<float>({2}, {1, 2})
      .expect(Sequence{{map<int64_t, float>({7, 8}, {1, 2})}})
      .run();
  ml("ZipMap").attribute("classlabels_int64s", Ints{7}).input<float>({0, 1}, {}).expect(Sequence{}).run();
}

TEST(MlMaps, Errors) {
  auto has = [](OpTest& test, const char* text) {
    std::string error = test.error();
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  has(ml("ZipMap").attribute("classlabels_int64s", Ints{7}).input<float>({1, 2}, {1, 2}), "1 labels for 2 columns");
  has(ml("ZipMap").input<float>({1, 2}, {1, 2}), "one of classlabels_int64s and classlabels_strings must be given");
  has(ml("CastMap").attribute("cast_to", "TO_BOOL").input(map<int64_t, float>({1}, {1})), "cast_to is 'TO_BOOL'");
  has(ml("CastMap").input(map<int64_t, std::string>({1}, {"x"})), "'x'");
  has(ml("CastMap").attribute("cast_to", "TO_INT64").input(map<int64_t, float>({1}, {1e30f})), "is no int64");
  has(ml("CastMap").input(map<std::string, float>({"a"}, {1})), "takes maps with keys of int64");
  has(ml("CastMap").input(map<int64_t, float>({1, 2}, {1})), "the map has 2 keys and 1 values");
  has(ml("CastMap").input<int64_t>({1}, {1}), "takes maps with keys of int64");
  has(ml("DictVectorizer").attribute("int64_vocabulary", Ints{1}).input(map<std::string, float>({"a"}, {1})), "int64");
}

}  // namespace
}  // namespace tenon
