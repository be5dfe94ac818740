#include "ops/cast/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "ops/cast/convert.h"

namespace tenon::ops {
namespace {

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  return fmt::format("{}", value);
}

std::string text_of(float value) {
  if (!std::isfinite(value)) return text_of(static_cast<double>(value));
  return fmt::format("{}", value);
}

template <typename T>
void write(const Tensor& from, Tensor& to) {
  auto in = from.data<T>();
  auto out = to.mutable_data<std::string>();
  for (size_t i = 0; i < in.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      out[i] = text_of(in[i]);
    } else if constexpr (std::is_same_v<T, bool>) {
      out[i] = in[i] ? "1" : "0";
    } else {
      const fmt::format_int digits(in[i]);
      out[i].assign(digits.data(), digits.size());
    }
  }
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  return text;
}

[[noreturn]] void fail_no_number(const std::string& text) {
  fail(ErrorCode::invalid_value, "'{}' is not a number", text.substr(0, 80));
}

// from_chars knows inf, infinity and nan in any case.
double read_double(const std::string& text) {
  std::string_view digits = trimmed(text);
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty()) fail_no_number(text);
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(digits).c_str(), nullptr);
  if (error != std::errc()) fail_no_number(text);
  return value;
}

// Whether all of `digits` is a number of this type.
template <typename T>
bool read_all(std::string_view digits, T& value) {
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
}

int64_t read_integer(const std::string& text) {
  const std::string_view digits = trimmed(text);
  int64_t value = 0;
  if (read_all(digits, value)) return value;
  if (digits == "True" || digits == "true") return 1;
  if (digits == "False" || digits == "false") return 0;
  if (uint64_t large = 0; read_all(digits, large)) return static_cast<int64_t>(large);
  const double number = read_double(text);
  constexpr double two_to_63 = 9223372036854775808.0;
  return number == number ? static_cast<int64_t>(std::clamp(number, -two_to_63, two_to_63 - 1024)) : 0;
}

}  // namespace

void numbers_to_text(const Tensor& from, Tensor& to) {
  switch (from.type()) {
    using enum ElementType;
    case float32:
      return write<float>(from, to);
    case float64:
      return write<double>(from, to);
    case boolean:
      return write<bool>(from, to);
    case int64:
      return write<int64_t>(from, to);
    case uint64:
      return write<uint64_t>(from, to);
    case string: {
      std::ranges::copy(from.data<std::string>(), to.mutable_data<std::string>().begin());
      return;
    }
    default:
      return numbers_to_text(convert(from, is_floating(from.type()) ? float32 : int64), to);
  }
}

Tensor text_to_numbers(const Tensor& from, bool floats) {
  auto in = from.data<std::string>();
  Tensor result(floats ? ElementType::float64 : ElementType::int64, from.shape());
  if (floats)
    std::ranges::transform(in, result.mutable_data<double>().begin(), read_double);
  else
    std::ranges::transform(in, result.mutable_data<int64_t>().begin(), read_integer);
  return result;
}

}  // namespace tenon::ops
