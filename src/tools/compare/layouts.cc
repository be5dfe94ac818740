#include "tools/compare/layouts.h"

#include <cstring>

#include "tenon/element_type.h"

namespace tenon::tools {
namespace {

bool could_be_blocked(const Tensor& image, const Shape& plain) {
  const Shape& shape = image.shape();
  if (shape.rank() != 5 || plain.rank() != 4) return false;
  const int64_t block = shape[4], channels = plain[1];
  return block > 0 && shape[0] == plain[0] && shape[1] == (channels + block - 1) / block && shape[2] == plain[2] &&
         shape[3] == plain[3] && bits_of(image.type()) % 8 == 0;
}

// [N, C / block, H, W, block] as [N, C, H, W].
Tensor without_blocks(const Tensor& image, const Shape& plain) {
  Tensor result(image.type(), plain);
  const Shape& shape = image.shape();
  const int64_t block = shape[4], pixels = plain[2] * plain[3], channels = plain[1], blocks = shape[1];
  const auto size = static_cast<size_t>(bits_of(image.type()) / 8);
  const auto* from = static_cast<const std::byte*>(image.raw());
  auto* to = static_cast<std::byte*>(result.mutable_raw());
  for (int64_t n = 0; n < plain[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        const auto source = static_cast<size_t>(((n * blocks + c / block) * pixels + p) * block + c % block);
        const auto target = static_cast<size_t>((n * channels + c) * pixels + p);
        std::memcpy(to + target * size, from + source * size, size);
      }
    }
  }
  return result;
}

}  // namespace

std::optional<std::pair<Tensor, Tensor>> in_one_layout(const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return std::pair(a, b);
  if (could_be_blocked(a, b.shape())) return std::pair(without_blocks(a, b.shape()), b);
  if (could_be_blocked(b, a.shape())) return std::pair(a, without_blocks(b, a.shape()));
  return std::nullopt;
}

}  // namespace tenon::tools
