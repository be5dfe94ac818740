// As much of Unicode as operators on text need. Nothing here looks at the locale of the process: models name one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::ops {

inline constexpr int32_t last_code_point = 0x10FFFF;

// The code point at `at`, which moves past it; nullopt, past one byte, where the bytes are not UTF-8.
std::optional<int32_t> next_code_point(std::string_view text, size_t& at);
void append_utf8(std::string& text, int32_t code_point);

// What str.split of Python takes as white space.
bool is_white_space(int32_t code_point);

// The simple case mappings, from one code point to one.
int32_t to_lower(int32_t code_point);
int32_t to_upper(int32_t code_point);
// Languages that write an i with and one without a dot, each in both cases, are Turkish and Azerbaijani; others change
// case alike.
enum class Letters { usual, turkish };
// Those of a locale such as tr_TR.UTF-8, by its language.
Letters letters_of(std::string_view locale);

// Every code point changed; bytes that are not UTF-8 stay as they are.
std::string to_lower(std::string_view text, Letters letters = Letters::usual);
std::string to_upper(std::string_view text, Letters letters = Letters::usual);

// Calls `add(first, last)` for ranges of code points whose lower or upper case is in [first, last], or is the lower or
// upper case of one in it.
void for_each_other_case(int32_t first, int32_t last, const std::function<void(int32_t, int32_t)>& add);

}  // namespace tenon::ops
