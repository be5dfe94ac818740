#include "op_test.h"

namespace tenon {
namespace {

OpTest matching(const char* pattern, Shape shape, std::initializer_list<std::string> texts) {
  OpTest test("RegexFullMatch");
  test.attribute("pattern", pattern).input<std::string>(std::move(shape), texts);
  return test;
}

TEST(RegexFullMatch, Shapes) {
  matching("a+", {2, 2}, {"a", "b", "aa", "ab"}).expect<bool>({2, 2}, {true, false, true, false}).run();
  matching("", {}, {""}).expect<bool>({}, {true}).run();
  matching("a", {0}, {}).expect<bool>({0}, {}).run();
}

TEST(RegexFullMatch, Errors) {
  EXPECT_EQ(matching("a(", {1}, {"a"}).error(),
            "invalid-attribute in RegexFullMatch 'tested' (node 0): the pattern is not a regular expression: "
            "a ) is missing at byte 2");
  EXPECT_NE(OpTest("RegexFullMatch").input<std::string>({1}, {"a"}).error().find("attribute 'pattern' is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
