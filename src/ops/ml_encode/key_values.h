#pragma once

#include <string>

#include "ir/graph.h"

namespace tenon::ops {

// A list that LabelEncoder has in one of several attributes: "keys" in keys_strings, keys_int64s, keys_floats or
// keys_tensor.
struct ListedTensor {
  ElementType type;
  int64_t length;
};
// Throws ErrorCode::invalid_attribute unless there is just one.
ListedTensor listed_tensor(const ir::Node& node, const std::string& prefix);
// The list itself.
Tensor read_listed_tensor(const ir::Node& node, const std::string& prefix);

}  // namespace tenon::ops
