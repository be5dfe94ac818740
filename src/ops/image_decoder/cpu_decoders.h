// The decoders of the formats. TENON_WITH_… are set by cmake/tenon_dependencies.cmake where the library is there;
// without it the decoder is null, and its file is not compiled.
#pragma once

#include "ops/image_decoder/cpu_formats.h"

namespace tenon::ops {

bool decode_bmp(Bytes file, Canvas& canvas);
bool decode_pnm(Bytes file, Canvas& canvas);

using Decoder = bool (*)(Bytes, Canvas&);

#ifdef TENON_WITH_JPEG
bool decode_jpeg(Bytes file, Canvas& canvas);
#else
inline constexpr Decoder decode_jpeg = nullptr;
#endif

#ifdef TENON_WITH_JPEG2000
bool decode_jpeg2000(Bytes file, Canvas& canvas);
#else
inline constexpr Decoder decode_jpeg2000 = nullptr;
#endif

#ifdef TENON_WITH_PNG
bool decode_png(Bytes file, Canvas& canvas);
#else
inline constexpr Decoder decode_png = nullptr;
#endif

#ifdef TENON_WITH_TIFF
bool decode_tiff(Bytes file, Canvas& canvas);
#else
inline constexpr Decoder decode_tiff = nullptr;
#endif

#ifdef TENON_WITH_WEBP
bool decode_webp(Bytes file, Canvas& canvas);
#else
inline constexpr Decoder decode_webp = nullptr;
#endif

}  // namespace tenon::ops
