#include "tools/type_edit.h"

#include <gtest/gtest.h>

namespace tenon::tools {
namespace {

std::string put(const std::string& text, const std::map<std::string, int64_t>& sizes) {
  return substitute(text,
                    [&](const std::string& name) -> std::optional<Dim> {
                      auto found = sizes.find(name);
                      return found == sizes.end() ? std::nullopt : std::optional(Dim(found->second));
                    })
      .to_string();
}

TEST(TypeEdit, SizesArePutIntoExpressions) {
  EXPECT_EQ(put("n", {{"n", 4}}), "4");
  EXPECT_EQ(put("2*n + 1", {{"n", 4}}), "9");
  EXPECT_EQ(put("floor(width/4) - 1", {{"width", 18}}), "3");
  EXPECT_EQ(put("(a + b)*3", {{"a", 1}}), "3*b + 3");
  EXPECT_EQ(put("max(a, 2) + min(b, 7)", {{"a", 1}, {"b", 9}}), "9");
  EXPECT_EQ(put("a//2 - -3", {{"a", 5}}), "a//2 - -3") << "what cannot be read stays a name";
  EXPECT_EQ(put("n", {{"m", 4}}), "n");
  EXPECT_EQ(put("batch size", {{"size", 4}}), "batch size") << "a name with a blank in it";
  EXPECT_EQ(put("batch size", {{"batch size", 4}}), "4");
  EXPECT_EQ(put("99999999999999999999*n", {{"n", 2}}), "99999999999999999999*n");
  EXPECT_EQ(put("n +", {{"n", 2}}), "n +");
  EXPECT_EQ(put("((n", {{"n", 2}}), "((n");
}

TEST(TypeEdit, NamesInExpressions) {
  EXPECT_EQ(names_in("past + 2*seq.1"), (std::vector<std::string>{"past", "seq.1"}));
  EXPECT_EQ(names_in("floor(w/2)"), std::vector<std::string>{"w"});
  EXPECT_EQ(names_in("batch size"), std::vector<std::string>{"batch size"});
  EXPECT_EQ(replace_names("past + 2*seq", {{"seq", "s"}, {"pas", "x"}}), "past + 2*s");
  EXPECT_EQ(replace_names("batch size", {{"batch size", "n"}, {"batch", "x"}}), "n");
}

}  // namespace
}  // namespace tenon::tools
