#include "ops/text/unicode.h"

#include <algorithm>
#include <span>
#include <vector>

namespace tenon::ops {
namespace {

// Every `step`-th code point of [first, last] is an upper case letter; its lower case is `distance` further.
struct CasePairs {
  int32_t first, last, step, distance;
};

constexpr CasePairs case_pairs[] = {
    {0x41, 0x5A, 1, 32},         {0xC0, 0xD6, 1, 32},         {0xD8, 0xDE, 1, 32},         {0x100, 0x12E, 2, 1},
    {0x132, 0x136, 2, 1},        {0x139, 0x147, 2, 1},        {0x14A, 0x176, 2, 1},        {0x178, 0x178, 1, -121},
    {0x179, 0x17D, 2, 1},        {0x181, 0x181, 1, 210},      {0x182, 0x184, 2, 1},        {0x186, 0x186, 1, 206},
    {0x187, 0x187, 1, 1},        {0x189, 0x18A, 1, 205},      {0x18B, 0x18B, 1, 1},        {0x18E, 0x18E, 1, 79},
    {0x18F, 0x18F, 1, 202},      {0x190, 0x190, 1, 203},      {0x191, 0x191, 1, 1},        {0x193, 0x193, 1, 205},
    {0x194, 0x194, 1, 207},      {0x196, 0x196, 1, 211},      {0x197, 0x197, 1, 209},      {0x198, 0x198, 1, 1},
    {0x19C, 0x19C, 1, 211},      {0x19D, 0x19D, 1, 213},      {0x19F, 0x19F, 1, 214},      {0x1A0, 0x1A4, 2, 1},
    {0x1A6, 0x1A6, 1, 218},      {0x1A7, 0x1A7, 1, 1},        {0x1A9, 0x1A9, 1, 218},      {0x1AC, 0x1AC, 1, 1},
    {0x1AE, 0x1AE, 1, 218},      {0x1AF, 0x1AF, 1, 1},        {0x1B1, 0x1B2, 1, 217},      {0x1B3, 0x1B5, 2, 1},
    {0x1B7, 0x1B7, 1, 219},      {0x1B8, 0x1B8, 1, 1},        {0x1BC, 0x1BC, 1, 1},        {0x1C4, 0x1C4, 1, 2},
    {0x1C7, 0x1C7, 1, 2},        {0x1CA, 0x1CA, 1, 2},        {0x1CD, 0x1DB, 2, 1},        {0x1DE, 0x1EE, 2, 1},
    {0x1F1, 0x1F1, 1, 2},        {0x1F4, 0x1F4, 1, 1},        {0x1F6, 0x1F6, 1, -97},      {0x1F7, 0x1F7, 1, -56},
    {0x1F8, 0x21E, 2, 1},        {0x220, 0x220, 1, -130},     {0x222, 0x232, 2, 1},        {0x23A, 0x23A, 1, 10795},
    {0x23B, 0x23B, 1, 1},        {0x23D, 0x23D, 1, -163},     {0x23E, 0x23E, 1, 10792},    {0x241, 0x241, 1, 1},
    {0x243, 0x243, 1, -195},     {0x244, 0x244, 1, 69},       {0x245, 0x245, 1, 71},       {0x246, 0x24E, 2, 1},
    {0x370, 0x372, 2, 1},        {0x376, 0x376, 1, 1},        {0x37F, 0x37F, 1, 116},      {0x386, 0x386, 1, 38},
    {0x388, 0x38A, 1, 37},       {0x38C, 0x38C, 1, 64},       {0x38E, 0x38F, 1, 63},       {0x391, 0x3A1, 1, 32},
    {0x3A3, 0x3AB, 1, 32},       {0x3CF, 0x3CF, 1, 8},        {0x3D8, 0x3EE, 2, 1},        {0x3F7, 0x3F7, 1, 1},
    {0x3F9, 0x3F9, 1, -7},       {0x3FA, 0x3FA, 1, 1},        {0x3FD, 0x3FF, 1, -130},     {0x400, 0x40F, 1, 80},
    {0x410, 0x42F, 1, 32},       {0x460, 0x480, 2, 1},        {0x48A, 0x4BE, 2, 1},        {0x4C0, 0x4C0, 1, 15},
    {0x4C1, 0x4CD, 2, 1},        {0x4D0, 0x52E, 2, 1},        {0x531, 0x556, 1, 48},       {0x10A0, 0x10C5, 1, 7264},
    {0x10C7, 0x10C7, 1, 7264},   {0x10CD, 0x10CD, 1, 7264},   {0x13A0, 0x13EF, 1, 38864},  {0x13F0, 0x13F5, 1, 8},
    {0x1C90, 0x1CBA, 1, -3008},  {0x1CBD, 0x1CBF, 1, -3008},  {0x1E00, 0x1E94, 2, 1},      {0x1EA0, 0x1EFE, 2, 1},
    {0x1F08, 0x1F0F, 1, -8},     {0x1F18, 0x1F1D, 1, -8},     {0x1F28, 0x1F2F, 1, -8},     {0x1F38, 0x1F3F, 1, -8},
    {0x1F48, 0x1F4D, 1, -8},     {0x1F59, 0x1F5F, 2, -8},     {0x1F68, 0x1F6F, 1, -8},     {0x1F88, 0x1F8F, 1, -8},
    {0x1F98, 0x1F9F, 1, -8},     {0x1FA8, 0x1FAF, 1, -8},     {0x1FB8, 0x1FB9, 1, -8},     {0x1FBA, 0x1FBB, 1, -74},
    {0x1FBC, 0x1FBC, 1, -9},     {0x1FC8, 0x1FCB, 1, -86},    {0x1FCC, 0x1FCC, 1, -9},     {0x1FD8, 0x1FD9, 1, -8},
    {0x1FDA, 0x1FDB, 1, -100},   {0x1FE8, 0x1FE9, 1, -8},     {0x1FEA, 0x1FEB, 1, -112},   {0x1FEC, 0x1FEC, 1, -7},
    {0x1FF8, 0x1FF9, 1, -128},   {0x1FFA, 0x1FFB, 1, -126},   {0x1FFC, 0x1FFC, 1, -9},     {0x2132, 0x2132, 1, 28},
    {0x2160, 0x216F, 1, 16},     {0x2183, 0x2183, 1, 1},      {0x24B6, 0x24CF, 1, 26},     {0x2C00, 0x2C2F, 1, 48},
    {0x2C60, 0x2C60, 1, 1},      {0x2C62, 0x2C62, 1, -10743}, {0x2C63, 0x2C63, 1, -3814},  {0x2C64, 0x2C64, 1, -10727},
    {0x2C67, 0x2C6B, 2, 1},      {0x2C6D, 0x2C6D, 1, -10780}, {0x2C6E, 0x2C6E, 1, -10749}, {0x2C6F, 0x2C6F, 1, -10783},
    {0x2C70, 0x2C70, 1, -10782}, {0x2C72, 0x2C72, 1, 1},      {0x2C75, 0x2C75, 1, 1},      {0x2C7E, 0x2C7F, 1, -10815},
    {0x2C80, 0x2CE2, 2, 1},      {0x2CEB, 0x2CED, 2, 1},      {0x2CF2, 0x2CF2, 1, 1},      {0xA640, 0xA66C, 2, 1},
    {0xA680, 0xA69A, 2, 1},      {0xA722, 0xA72E, 2, 1},      {0xA732, 0xA76E, 2, 1},      {0xA779, 0xA77B, 2, 1},
    {0xA77D, 0xA77D, 1, -35332}, {0xA77E, 0xA786, 2, 1},      {0xA78B, 0xA78B, 1, 1},      {0xA78D, 0xA78D, 1, -42280},
    {0xA790, 0xA792, 2, 1},      {0xA796, 0xA7A8, 2, 1},      {0xA7AA, 0xA7AA, 1, -42308}, {0xA7AB, 0xA7AB, 1, -42319},
    {0xA7AC, 0xA7AC, 1, -42315}, {0xA7AD, 0xA7AD, 1, -42305}, {0xA7AE, 0xA7AE, 1, -42308}, {0xA7B0, 0xA7B0, 1, -42258},
    {0xA7B1, 0xA7B1, 1, -42282}, {0xA7B2, 0xA7B2, 1, -42261}, {0xA7B3, 0xA7B3, 1, 928},    {0xA7B4, 0xA7C2, 2, 1},
    {0xA7C4, 0xA7C4, 1, -48},    {0xA7C5, 0xA7C5, 1, -42307}, {0xA7C6, 0xA7C6, 1, -35384}, {0xA7C7, 0xA7C9, 2, 1},
    {0xA7D0, 0xA7D0, 1, 1},      {0xA7D6, 0xA7D8, 2, 1},      {0xA7F5, 0xA7F5, 1, 1},      {0xFF21, 0xFF3A, 1, 32},
    {0x10400, 0x10427, 1, 40},   {0x104B0, 0x104D3, 1, 40},   {0x10570, 0x1057A, 1, 39},   {0x1057C, 0x1058A, 1, 39},
    {0x1058C, 0x10592, 1, 39},   {0x10594, 0x10595, 1, 39},   {0x10C80, 0x10CB2, 1, 64},   {0x118A0, 0x118BF, 1, 32},
    {0x16E40, 0x16E5F, 1, 32},   {0x1E900, 0x1E921, 1, 34}};

// Mappings that do not lead back.
struct OneWay {
  int32_t from, to;
};
constexpr OneWay only_lower[] = {{0x130, 0x69},  {0x1C5, 0x1C6}, {0x1C8, 0x1C9},  {0x1CB, 0x1CC}, {0x1F2, 0x1F3},
                                 {0x3F4, 0x3B8}, {0x1E9E, 0xDF}, {0x2126, 0x3C9}, {0x212A, 0x6B}, {0x212B, 0xE5}};
constexpr OneWay only_upper[] = {{0xB5, 0x39C},    {0x131, 0x49},   {0x17F, 0x53},   {0x1C5, 0x1C4},  {0x1C8, 0x1C7},
                                 {0x1CB, 0x1CA},   {0x1F2, 0x1F1},  {0x345, 0x399},  {0x3C2, 0x3A3},  {0x3D0, 0x392},
                                 {0x3D1, 0x398},   {0x3D5, 0x3A6},  {0x3D6, 0x3A0},  {0x3F0, 0x39A},  {0x3F1, 0x3A1},
                                 {0x3F5, 0x395},   {0x1C80, 0x412}, {0x1C81, 0x414}, {0x1C82, 0x41E}, {0x1C83, 0x421},
                                 {0x1C84, 0x422},  {0x1C85, 0x422}, {0x1C86, 0x42A}, {0x1C87, 0x462}, {0x1C88, 0xA64A},
                                 {0x1E9B, 0x1E60}, {0x1FBE, 0x399}};

std::optional<int32_t> find(std::span<const OneWay> mappings, int32_t code_point) {
  auto at = std::ranges::lower_bound(mappings, code_point, {}, &OneWay::from);
  return at != mappings.end() && at->from == code_point ? std::optional(at->to) : std::nullopt;
}

// `case_pairs` by lower case.
std::vector<CasePairs> sorted_by_lower_case() {
  std::vector<CasePairs> result;
  for (const CasePairs& p : case_pairs)
    result.push_back({p.first + p.distance, p.last + p.distance, p.step, -p.distance});
  std::ranges::sort(result, {}, &CasePairs::first);
  return result;
}

// The pairs with the first letter that is not behind `code_point`.
const CasePairs* find(std::span<const CasePairs> pairs, int32_t code_point) {
  auto at = std::ranges::lower_bound(pairs, code_point, {}, &CasePairs::last);
  bool has = at != pairs.end() && at->first <= code_point && (code_point - at->first) % at->step == 0;
  return has ? &*at : nullptr;
}

constexpr int32_t ascii_to_lower(int32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
constexpr int32_t ascii_to_upper(int32_t c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }

constexpr int32_t dotted_capital_i = 0x130, dotless_i = 0x131;

// Appends every code point from `at` on, changed.
template <typename Change>
void append_changed(std::string& result, std::string_view text, size_t at, Change change) {
  while (at < text.size()) {
    size_t start = at;
    if (auto code_point = next_code_point(text, at)) {
      append_utf8(result, change(*code_point));
    } else {
      result += text[start];
    }
  }
}

template <typename Change>
std::string change_each(std::string_view text, Change change) {
  std::string result;
  append_changed(result, text, 0, change);
  return result;
}

// The same, but the first ones, as long as they are ASCII, by `change_ascii`.
template <typename ChangeAscii, typename Change>
std::string change_each(std::string_view text, ChangeAscii change_ascii, Change change) {
  std::string result(text);
  size_t at = 0;
  for (; at < text.size() && static_cast<uint8_t>(text[at]) < 0x80; ++at)
    result[at] = static_cast<char>(change_ascii(text[at]));
  if (at == text.size()) return result;
  result.resize(at);
  append_changed(result, text, at, change);
  return result;
}

}  // namespace

std::optional<int32_t> next_code_point(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const int32_t lead = byte(at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  constexpr int32_t smallest[] = {0, 0x80, 0x800, 0x10000};
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < static_cast<size_t>(more)) return std::nullopt;
  int32_t result = lead & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    const int32_t next = byte(at + static_cast<size_t>(i));
    if ((next & 0xC0) != 0x80) return std::nullopt;
    result = result << 6 | (next & 0x3F);
  }
  const bool surrogate = result >= 0xD800 && result < 0xE000;
  if (result < smallest[more] || result > last_code_point || surrogate) return std::nullopt;
  at += static_cast<size_t>(more);
  return result;
}

void append_utf8(std::string& text, int32_t code_point) {
  auto add = [&](int32_t byte) { text += static_cast<char>(byte); };
  auto rest = [&](int shift) { add(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0 | code_point >> 6), rest(0);
  } else if (code_point < 0x10000) {
    add(0xE0 | code_point >> 12), rest(6), rest(0);
  } else {
    add(0xF0 | code_point >> 18), rest(12), rest(6), rest(0);
  }
}

bool is_white_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

int32_t to_lower(int32_t code_point) {
  if (code_point < 0x80) return ascii_to_lower(code_point);
  if (const CasePairs* pairs = find(case_pairs, code_point)) return code_point + pairs->distance;
  return find(only_lower, code_point).value_or(code_point);
}

int32_t to_upper(int32_t code_point) {
  if (code_point < 0x80) return ascii_to_upper(code_point);
  static const std::vector<CasePairs> by_lower_case = sorted_by_lower_case();
  if (const CasePairs* pairs = find(by_lower_case, code_point)) return code_point + pairs->distance;
  return find(only_upper, code_point).value_or(code_point);
}

Letters letters_of(std::string_view locale) {
  const std::string language = to_lower(locale.substr(0, locale.find_first_of("_-.@")));
  return language == "tr" || language == "az" ? Letters::turkish : Letters::usual;
}

std::string to_lower(std::string_view text, Letters letters) {
  const auto usual = [](int32_t code_point) { return to_lower(code_point); };
  if (letters == Letters::usual) return change_each(text, ascii_to_lower, usual);
  // The lower case of the I with a dot is the usual one.
  return change_each(text, [&](int32_t c) { return c == 'I' ? dotless_i : usual(c); });
}

std::string to_upper(std::string_view text, Letters letters) {
  const auto usual = [](int32_t code_point) { return to_upper(code_point); };
  if (letters == Letters::usual) return change_each(text, ascii_to_upper, usual);
  return change_each(text, [&](int32_t c) { return c == 'i' ? dotted_capital_i : usual(c); });
}

void for_each_other_case(int32_t first, int32_t last, const std::function<void(int32_t, int32_t)>& add) {
  // The letters of [from, to] in steps, as far as they are in [first, last], moved by `distance`.
  auto move = [&](int32_t from, int32_t to, int32_t step, int32_t distance) {
    int32_t begin = from;
    if (first > from) begin += (first - from + step - 1) / step * step;
    const int32_t end = std::min(to, last);
    if (begin > end) return;
    if (step == 1) return add(begin + distance, end + distance);
    for (int32_t c = begin; c <= end; c += step) add(c + distance, c + distance);
  };
  for (const CasePairs& p : case_pairs) {
    move(p.first, p.last, p.step, p.distance);
    move(p.first + p.distance, p.last + p.distance, p.step, -p.distance);
  }
  for (std::span<const OneWay> mappings : {std::span<const OneWay>(only_lower), std::span<const OneWay>(only_upper)}) {
    for (const OneWay& mapping : mappings) {
      // The i's with and without a dot differ in more than case outside of Turkish.
      if (mapping.from == 0x130 || mapping.from == 0x131) continue;
      move(mapping.from, mapping.from, 1, mapping.to - mapping.from);
      move(mapping.to, mapping.to, 1, mapping.from - mapping.to);
    }
  }
}

}  // namespace tenon::ops
