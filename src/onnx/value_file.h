#pragma once

#include <span>
#include <string>

#include "ir/type.h"
#include "tenon/value.h"

namespace tenon::onnx {

// Reads a value in the format of ONNX test data: TensorProto, SparseTensorProto, SequenceProto, MapProto or
// OptionalProto, as `type` says. Content is copied.
Value parse_value(std::span<const std::byte> bytes, const ir::Type& type);

// TensorProto of a tensor.
std::string serialize_tensor(const Tensor& tensor, const std::string& name);

}  // namespace tenon::onnx
