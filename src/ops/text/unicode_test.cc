#include "ops/text/unicode.h"

#include <gtest/gtest.h>

namespace tenon::ops {
namespace {

TEST(Unicode, Utf8ThereAndBack) {
  for (int32_t c : {0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, last_code_point}) {
    std::string text;
    append_utf8(text, c);
    size_t at = 0;
    EXPECT_EQ(next_code_point(text, at), c);
    EXPECT_EQ(at, text.size());
  }
}

TEST(Unicode, BrokenUtf8) {
  // A lone continuation, an overlong form, a surrogate, one past the last, a truncated one.
  for (const char* text :
       {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\xFF"}) {
    size_t at = 0;
    EXPECT_EQ(next_code_point(text, at), std::nullopt);
    EXPECT_EQ(at, 1u);
  }
}

TEST(Unicode, Case) {
  EXPECT_EQ(to_lower(std::string_view("AZÀŸΣЯԱⅨＡ")), "azàÿσяաⅸａ");
  EXPECT_EQ(to_upper(std::string_view("azàÿσςяıſ")), "AZÀŸΣΣЯIS");
  EXPECT_EQ(to_lower(std::string_view("A longer TEXT, only the end of which is not ASCII: À\xff"
                                      "B")),
            "a longer text, only the end of which is not ascii: à\xff"
            "b");
  EXPECT_EQ(to_lower(0x212A), 'k');
  EXPECT_EQ(to_lower(0x130), 'i');
  for (int32_t c = 0; c < 0x20000; ++c) {
    EXPECT_EQ(to_lower(to_lower(c)), to_lower(c));
    EXPECT_EQ(to_upper(to_upper(c)), to_upper(c));
  }
}

TEST(Unicode, OtherCase) {
  std::string found;
  for_each_other_case('j', 'k', [&](int32_t first, int32_t last) {
    for (int32_t c = first; c <= last; ++c) append_utf8(found, c);
  });
  EXPECT_EQ(found, "JK\u212A");
}

}  // namespace
}  // namespace tenon::ops
