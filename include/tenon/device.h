// Tensors in the memory of a GPU.
#pragma once

#include <string>
#include <string_view>

#include "tenon/tensor.h"

namespace tenon {

// A copy in the memory of the provider's device, such as "cuda". It can be an input of a run, and the destination of an
// output: then nothing goes through the host. Its elements cannot be read on the host. Throws
// ErrorCode::provider_unavailable where the provider cannot start, invalid_argument where it has no memory of its own.
Tensor on_device(const Tensor& tensor, std::string_view provider = "cuda");
// A copy in the host's memory; the tensor itself if it is there.
Tensor on_host(const Tensor& tensor);
// "host" or the name of the provider whose device has it.
std::string_view memory_of(const Tensor& tensor);

}  // namespace tenon
