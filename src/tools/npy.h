#pragma once

#include <span>
#include <string>

#include "tenon/tensor.h"

namespace tenon::tools {

// A NumPy array from the bytes of a .npy file. `wanted` tells what plain bytes ("V2") stand for.
Tensor parse_npy(std::span<const std::byte> bytes, ElementType wanted);

// The part of an uncompressed .npz archive that holds the array `name`, or the only one.
std::span<const std::byte> find_in_npz(std::span<const std::byte> archive, const std::string& name);

}  // namespace tenon::tools
