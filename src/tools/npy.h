#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/tensor.h"

namespace tenon::tools {

// A NumPy array from the bytes of a .npy file. `wanted` tells what plain bytes ("V2") stand for.
Tensor parse_npy(std::span<const std::byte> bytes, ElementType wanted);

// The same without a copy, where the file has the elements as tensors do: neither strings nor Fortran order.
struct NpyView {
  ElementType type;
  Shape shape;
  std::span<const std::byte> data;
};
std::optional<NpyView> view_npy(std::span<const std::byte> bytes, ElementType wanted);

// The arrays of an uncompressed .npz archive, by name. Throws ErrorCode::invalid_value for what is none.
std::vector<std::pair<std::string, std::span<const std::byte>>> arrays_in_npz(std::span<const std::byte> archive);

// The part of an uncompressed .npz archive that holds the array `name`, or the only one.
std::span<const std::byte> find_in_npz(std::span<const std::byte> archive, const std::string& name);

}  // namespace tenon::tools
