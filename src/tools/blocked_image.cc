#include "tools/blocked_image.h"

#include <cstring>

#include "tenon/element_type.h"

namespace tenon::tools {

Tensor without_blocks(const Tensor& image, int64_t channels) {
  const Shape& shape = image.shape();
  // Channels last are one block.
  const bool is_last = image.rank() == 4;
  const int first = is_last ? 1 : 2;
  const int64_t blocks = is_last ? 1 : shape[1], pixels = shape[first] * shape[first + 1], block = shape[first + 2];
  Tensor result(image.type(), Shape{shape[0], channels, shape[first], shape[first + 1]});
  const auto size = static_cast<size_t>(bits_of(image.type()) / 8);
  const auto* from = static_cast<const std::byte*>(image.raw());
  auto* to = static_cast<std::byte*>(result.mutable_raw());
  for (int64_t n = 0; n < shape[0]; ++n) {
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

}  // namespace tenon::tools
