#pragma once

#include "tenon/tensor.h"

namespace tenon::tools {

// [N, C / block rounded up, H, W, block] or [N, H, W, C], as kernels hold images, as [N, C, H, W].
Tensor without_blocks(const Tensor& image, int64_t channels);

}  // namespace tenon::tools
