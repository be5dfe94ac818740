#include "ops/regex_full_match/regex.h"

#include <gtest/gtest.h>

#include "tenon/error.h"

namespace tenon::ops {
namespace {

struct Case {
  std::string pattern;
  std::vector<std::string> matching, others;
};

const Case cases[] = {
    {"", {""}, {"a"}},
    {"abc", {"abc"}, {"ab", "abcd", "xabc"}},
    {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
    {"(a|b)*c", {"c", "abac"}, {"ab", "ca"}},
    {"a+b?", {"a", "aab"}, {"", "b", "abb"}},
    {"a+?b??", {"a", "aab"}, {"", "b", "abb"}},
    {"(a*)*", {"", "aaa"}, {"b"}},
    {"a{2}", {"aa"}, {"a", "aaa"}},
    {"a{2,}", {"aa", "aaaa"}, {"a"}},
    {"(?:ab){1,2}", {"ab", "abab"}, {"", "ababab"}},
    {"a{0}", {""}, {"a"}},
    {"a{,2}|{", {"a{,2}", "{"}, {"aa"}},
    {".", {"a", "ä", "\U0001F600"}, {"", "\n", "ab", "\xff"}},
    {"(?s).", {"\n"}, {}},
    {"(?s:.)a", {"\na"}, {}},
    {"[^a]", {"b", "\n", "я"}, {"a", "\xff"}},
    {"[a-cx]+", {"abcx"}, {"d", ""}},
    {"[]a]", {"]", "a"}, {"b"}},
    {"[a-]", {"-", "a"}, {"b"}},
    {"[-a]", {"-", "a"}, {"b"}},
    {R"([\]\-\x41-C]+)", {"]-ABC"}, {"\\"}},
    {R"(\d\D\s\S\w\W)", {"1a\tbc!"}, {"aa\tbc!"}},
    {R"([\d\s_]*)", {"1 _"}, {"a"}},
    {R"([^\d]*)", {"abc"}, {"1"}},
    {"[[:alpha:]]+", {"aB"}, {"1"}},
    {"[[:^alpha:]x]+", {"1x"}, {"a"}},
    {"[[:word:]]", {"_"}, {"-"}},
    {R"(\.\*\\)", {".*\\"}, {"a"}},
    {R"(\Qa.*\E+)", {"a.*", "a.**"}, {"aaa"}},
    {R"(\x41\x{1F600}\101\0\07\n)", {std::string("A\U0001F600A\0\a\n", 9)}, {}},
    {"(?i)straSSe", {"STRASSE", "strasse"}, {"straße"}},
    {"(?i)äσk", {"ÄΣK", "äς\u212A"}, {}},
    {"(?i)[a-c]+", {"aBC"}, {"d"}},
    {"(?i)[^a]", {"b"}, {"a", "A"}},
    {"a(?i)b(?-i)c", {"abc", "aBc"}, {"Abc", "abC"}},
    {"a(?i:b)c", {"aBc"}, {"aBC"}},
    {"(?P<x>a)(?<y_1>b)", {"ab"}, {}},
    {"^a$", {"a"}, {"a\n"}},
    {"(?m)^a$\n^b$", {"a\nb"}, {}},
    {"a$\nb", {}, {"a\nb"}},
    {R"(\Aa\z)", {"a"}, {}},
    {R"(\bab\b \Bc?)", {"ab "}, {"ab c"}},
    {R"(a\Bb)", {"ab"}, {}},
    {R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))", {"a.b@gmail.com", " x@yahoo.com!"}, {"a@mail.com"}},
    {"äöü?", {"äö", "äöü"}, {"ä"}},
};

TEST(Regex, Matches) {
  for (const Case& c : cases) {
    Regex regex(c.pattern);
    Regex::Matcher matcher(regex);
    for (const std::string& text : c.matching) EXPECT_TRUE(matcher.full_match(text)) << c.pattern << " on " << text;
    for (const std::string& text : c.others) EXPECT_FALSE(matcher.full_match(text)) << c.pattern << " on " << text;
  }
}

TEST(Regex, TimeIsLinear) {
  Regex regex("(a*)*(a|aa)*(a?){500}b");
  EXPECT_FALSE(Regex::Matcher(regex).full_match(std::string(10'000, 'a')));
}

// One matcher for many texts: what it remembers of one serves the next, also where that becomes too much.
TEST(Regex, ManyTexts) {
  const Regex regex("(?:a|b)*a(?:a|b){9}");
  Regex::Matcher matcher(regex);
  uint32_t seed = 1;
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint32_t length = i % 40; length > 0; --length) {
      seed = seed * 1664525 + 1013904223;
      text += seed >> 31 ? 'a' : 'b';
    }
    const bool expected = text.size() >= 10 && text[text.size() - 10] == 'a';
    EXPECT_EQ(matcher.full_match(text), expected) << text;
    EXPECT_FALSE(matcher.full_match(text + "ä"));
  }
}

std::string error_of(std::string_view pattern) {
  try {
    Regex regex(pattern);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

TEST(Regex, Errors) {
  const std::pair<std::string, const char*> broken[] = {
      {"(a", "a ) is missing at byte 2"},
      {"a)", "a ) without a ( at byte 1"},
      {"[a", "a ] is missing"},
      {"[b-a]", "ends before it begins"},
      {"[[:foo:]]", "no such class"},
      {"*a", "nothing to repeat"},
      {"a|+", "nothing to repeat"},
      {"a**", "a repetition is repeated"},
      {"a{2}{3}", "a repetition is repeated"},
      {"a{1001}", "more than 1000"},
      {"a{99999999999999}", "more than 1000"},
      {"(a{50}){50}", "more than 1000"},
      {"a{3,2}", "more at least than at most"},
      {"(?=a)", "looking ahead"},
      {"(?<!a)", "looking ahead"},
      {R"((a)\1)", "back-reference"},
      {R"(\9)", "back-reference"},
      {"\\", "nothing follows a backslash"},
      {R"(\y)", "no character or class"},
      {R"(\x4)", "hexadecimal"},
      {R"(\x{110000})", "no such character"},
      {R"(\p{Greek})", "does not support"},
      {R"([\pN])", "does not support"},
      {"(?z)", "no such flag"},
      {"(?i", "a ) is missing"},
      {"(?-)", "flags are missing"},
      {"(?P<a", "name of a group"},
      {"\xff", "not UTF-8"},
      {"[\xff]", "not UTF-8"},
      {std::string(2000, '('), "nested too deeply"},
      {"(" + std::string(300, 'a') + "){1000}", "too large"},
  };
  for (const auto& [pattern, reason] : broken) {
    EXPECT_NE(error_of(pattern).find(reason), std::string::npos) << pattern << ": " << error_of(pattern);
  }
}

}  // namespace
}  // namespace tenon::ops
