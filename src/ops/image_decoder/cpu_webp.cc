// WebP by libwebp; still images.
#include <webp/decode.h>

#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {

bool decode_webp(Bytes file, Canvas& canvas) {
  int width = 0, height = 0;
  if (!WebPGetInfo(file.data(), file.size(), &width, &height)) return false;
  canvas.start(width, height, 3, 4);
  const auto size = static_cast<size_t>(canvas.width() * canvas.height() * 3);
  return WebPDecodeRGBInto(file.data(), file.size(), canvas.row(0), size, width * 3) != nullptr;
}

}  // namespace tenon::ops
