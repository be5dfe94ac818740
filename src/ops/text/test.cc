#include "op_test.h"

namespace tenon {
namespace {

using Strings = std::vector<std::string>;

OpTest test(const char* op, Shape shape, std::initializer_list<std::string> texts) {
  OpTest result(op);
  result.input<std::string>(std::move(shape), texts);
  return result;
}

TEST(StringConcat, Broadcasts) {
  test("StringConcat", {2}, {"a", "ä"}).input<std::string>({2}, {"b", ""}).expect<std::string>({2}, {"ab", "ä"}).run();
  test("StringConcat", {2, 1}, {"a", "b"})
      .constant<std::string>({3}, {"1", "2", "3"})
      .expect<std::string>({2, 3}, {"a1", "a2", "a3", "b1", "b2", "b3"})
      .run();
  test("StringConcat", {}, {"x"}).input<std::string>({}, {"y"}).expect<std::string>({}, {"xy"}).run();
  test("StringConcat", {0}, {}).input<std::string>({1}, {"y"}).expect<std::string>({0}, {}).run();
}

TEST(StringSplit, Delimiter) {
  test("StringSplit", {4}, {"a--b", "--", "", "c"})
      .attribute("delimiter", "--")
      .expect<std::string>({4, 2}, {"a", "b", "", "", "", "", "c", ""})
      .expect<int64_t>({4}, {2, 2, 1, 1})
      .run();
  test("StringSplit", {}, {"a,b,c"})
      .attribute("delimiter", ",")
      .attribute("maxsplit", 1)
      .expect<std::string>({2}, {"a", "b,c"})
      .expect<int64_t>({}, {2})
      .run();
  test("StringSplit", {0, 2}, {}).expect<std::string>({0, 2, 0}, {}).expect<int64_t>({0, 2}, {}).run();
}

TEST(StringSplit, WhiteSpace) {
  test("StringSplit", {3}, {" a \t b\n", "", "c\u00a0d\u3000e"})
      .expect<std::string>({3, 3}, {"a", "b", "", "", "", "", "c", "d", "e"})
      .expect<int64_t>({3}, {2, 0, 3})
      .run();
  test("StringSplit", {1}, {" a  b c "})
      .attribute("delimiter", "")
      .attribute("maxsplit", 1)
      .expect<std::string>({1, 2}, {"a", "b c"})
      .no_output()
      .run();
  test("StringSplit", {1}, {" a b"}).attribute("maxsplit", 0).expect<std::string>({1, 1}, {"a b"}).no_output().run();
}

// Texts whose words are found by bits, and some that are too long for it or have other characters.
TEST(StringSplit, TextsOfEverySize) {
  Strings texts, words;
  std::vector<int64_t> counts;
  for (const std::string white : {" ", "\t", "\n", "\x0b", "\x0c", "\r", "\x1c", "\x1d", "\x1e", "\x1f", " \t "}) {
    for (int size = 1; size < 20; ++size) {
      for (const char* letter : {"a", "\x08", "\x0e", "\x1b", "!", "~", "\x7f", "\u00e9"}) {
        std::string word;
        for (int i = 0; i < size; ++i) word += letter;
        texts.insert(texts.end(), {word, white + word, word + white, white + "b" + white + word + white, white});
        words.insert(words.end(), {word, "", word, "", word, "", "b", word, "", ""});
        counts.insert(counts.end(), {1, 1, 1, 2, 0});
      }
    }
  }
  const auto n = std::ssize(texts);
  OpTest("StringSplit")
      .input(Tensor({n}, std::span<const std::string>(texts)))
      .expect(Tensor({n, 2}, std::span<const std::string>(words)))
      .expect(Tensor({n}, std::span<const int64_t>(counts)))
      .run();
}

TEST(StringNormalizer, CaseAndStopwords) {
  test("StringNormalizer", {3}, {"monday", "Österreich", "ΑΒΓ я"})
      .attribute("case_change_action", "LOWER")
      .expect<std::string>({3}, {"monday", "österreich", "αβγ я"})
      .run();
  test("StringNormalizer", {1, 3}, {"Monday", "", "straße ÿ\xff"})
      .attribute("case_change_action", "UPPER")
      .attribute("stopwords", Strings{"monday"})
      .attribute("is_case_sensitive", 1)
      .expect<std::string>({1, 3}, {"MONDAY", "", "STRAßE Ÿ\xff"})
      .run();
  test("StringNormalizer", {2}, {"Monday", "x"})
      .attribute("stopwords", Strings{"mONDAY"})
      .expect<std::string>({1}, {"x"})
      .run();
  test("StringNormalizer", {1, 1}, {"a"}).attribute("stopwords", Strings{"a"}).expect<std::string>({1, 1}, {""}).run();
}

TEST(StringNormalizer, Locale) {
  for (const char* locale : {"tr_TR", "az-AZ", "TR"}) {
    test("StringNormalizer", {2}, {"Iğdır", "İzmir"})
        .attribute("case_change_action", "LOWER")
        .attribute("locale", locale)
        .expect<std::string>({2}, {"ığdır", "izmir"})
        .run();
    test("StringNormalizer", {2}, {"Iğdır", "izmir"})
        .attribute("case_change_action", "UPPER")
        .attribute("locale", locale)
        .expect<std::string>({2}, {"IĞDIR", "İZMİR"})
        .run();
    test("StringNormalizer", {2}, {"ISI", "ışık"})
        .attribute("stopwords", Strings{"ısı"})
        .attribute("locale", locale)
        .expect<std::string>({1}, {"ışık"})
        .run();
  }
  test("StringNormalizer", {1}, {"TITLE"})
      .attribute("case_change_action", "LOWER")
      .attribute("locale", "en_US.UTF-8")
      .expect<std::string>({1}, {"title"})
      .run();
}

TEST(StringNormalizer, Errors) {
  EXPECT_NE(test("StringNormalizer", {2, 1}, {"a", "b"}).error().find("its first size is 2"), std::string::npos);
  EXPECT_NE(test("StringNormalizer", {}, {"a"}).error().find("it has rank 0"), std::string::npos);
  EXPECT_NE(test("StringNormalizer", {1}, {"a"}).attribute("case_change_action", "TITLE").error().find("'TITLE'"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
