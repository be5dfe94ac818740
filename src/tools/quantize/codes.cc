#include "tools/quantize/codes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "ops/quantize/codec.h"

namespace tenon::tools {
namespace {

// Scales that are no normal numbers cannot be divided by.
constexpr double least_scale = 1e-30;

// Steps along an axis: element (outer, channel, inner) of a row-major tensor.
struct Channels {
  int64_t outer = 1, channels = 1, inner = 1;

  Channels(const Shape& shape, int64_t axis) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (i < axis)
        outer *= shape[i];
      else if (i == axis)
        channels = shape[i];
      else
        inner *= shape[i];
    }
    if (axis < 0) {
      inner = outer * channels * inner;
      outer = channels = 1;
    }
  }
  template <typename Visit>
  void for_each(int64_t channel, Visit visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t begin = (o * channels + channel) * inner;
      for (int64_t i = begin; i < begin + inner; ++i) visit(static_cast<size_t>(i));
    }
  }
};

}  // namespace

CodeLimits code_limits(ElementType type) {
  const int bits = bits_of(type);
  switch (type) {
    case ElementType::uint2:
    case ElementType::uint4:
    case ElementType::uint8:
    case ElementType::uint16:
      return {0, (int64_t{1} << bits) - 1};
    case ElementType::int2:
    case ElementType::int4:
    case ElementType::int8:
    case ElementType::int16:
      return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
    default:
      fail(ErrorCode::invalid_argument, "{} has no codes; use uint8, int8, uint16, int16, uint4 or int4",
           name_of(type));
  }
}

double CodeMeaning::low() const {
  return static_cast<double>(scale) * static_cast<double>(code_limits(type).low - zero);
}
double CodeMeaning::high() const {
  return static_cast<double>(scale) * static_cast<double>(code_limits(type).high - zero);
}

CodeMeaning meaning_of(const Range& range, ElementType type, bool symmetric) {
  const CodeLimits limits = code_limits(type);
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  CodeMeaning meaning{type, 1, symmetric ? (limits.low + limits.high + 1) / 2 : limits.low};
  if (symmetric) {
    const double half = static_cast<double>(limits.high - meaning.zero);
    const double largest = std::max(-low, high);
    if (largest > 0) meaning.scale = static_cast<float>(std::max(largest / half, least_scale));
    return meaning;
  }
  if (high == low) return meaning;
  const double scale = std::max((high - low) / static_cast<double>(limits.high - limits.low), least_scale);
  meaning.scale = static_cast<float>(scale);
  meaning.zero = std::clamp(static_cast<int64_t>(std::nearbyint(static_cast<double>(limits.low) - low / scale)),
                            limits.low, limits.high);
  return meaning;
}

Tensor zero_tensor(ElementType type, Shape shape, std::span<const int64_t> zeros) {
  Tensor tensor(type, std::move(shape));
  std::vector<float> numbers(zeros.begin(), zeros.end());
  ops::store_from_float(numbers.data(), tensor, 0, std::ssize(numbers));
  return tensor;
}

CodedWeight code_weight(const Tensor& weight, const WeightCoding& coding) {
  const auto numbers = weight.data<float>();
  const Channels channels(weight.shape(), coding.axis);
  const CodeLimits limits = code_limits(coding.type);
  std::vector<float> codes(numbers.size()), scales;
  std::vector<int64_t> zeros;
  for (int64_t c = 0; c < channels.channels; ++c) {
    Range range;
    channels.for_each(c, [&](size_t i) {
      range.low = std::min<double>(range.low, numbers[i]);
      range.high = std::max<double>(range.high, numbers[i]);
    });
    CodeMeaning meaning = meaning_of(range, coding.type, coding.symmetric);
    if (!coding.least_scales.empty())
      meaning.scale = std::max(meaning.scale, static_cast<float>(coding.least_scales[static_cast<size_t>(c)]));
    // As many codes below 0 as above.
    const auto low = static_cast<float>(coding.symmetric ? 2 * meaning.zero - limits.high : limits.low);
    const auto high = static_cast<float>(limits.high), zero = static_cast<float>(meaning.zero);
    channels.for_each(
        c, [&](size_t i) { codes[i] = std::clamp(std::nearbyint(numbers[i] / meaning.scale) + zero, low, high); });
    scales.push_back(meaning.scale);
    zeros.push_back(meaning.zero);
  }
  const Shape shape = coding.axis < 0 ? Shape{} : Shape{channels.channels};
  CodedWeight result{Tensor(coding.type, weight.shape()), Tensor(shape, std::span<const float>(scales)), std::nullopt};
  ops::store_from_float(codes.data(), result.codes, 0, std::ssize(codes));
  if (std::ranges::any_of(zeros, [](int64_t zero) { return zero != 0; }))
    result.zeros = zero_tensor(coding.type, shape, zeros);
  return result;
}

}  // namespace tenon::tools
