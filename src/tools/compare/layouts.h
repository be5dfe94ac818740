#pragma once

#include <optional>
#include <utility>

#include "tenon/tensor.h"

namespace tenon::tools {

// Two tensors in one layout: as they are if they have one shape; an image in blocks of channels
// ([N, C / block rounded up, H, W, block]) beside one that is not, as [N, C, H, W]. Nothing if their
// shapes differ otherwise.
std::optional<std::pair<Tensor, Tensor>> in_one_layout(const Tensor& a, const Tensor& b);

}  // namespace tenon::tools
