#include "ops/ml_encode/key_values.h"

#include <optional>
#include <span>

#include "base/fail.h"
#include "ops/feature_rows.h"

namespace tenon::ops {
namespace {

struct Choice {
  const char* suffix;
  ElementType type;
};
constexpr Choice lists[] = {
    {"_strings", ElementType::string}, {"_int64s", ElementType::int64}, {"_floats", ElementType::float32}};

template <typename T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor(Shape{static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

}  // namespace

ListedTensor listed_tensor(const ir::Node& node, const std::string& prefix) {
  std::optional<ListedTensor> found;
  int count = 0;
  for (const Choice& choice : lists) {
    if (!node.attribute(prefix + choice.suffix)) continue;
    found = {choice.type, list_length(node, prefix + choice.suffix)};
    ++count;
  }
  if (const Tensor* tensor = node.tensor_attribute(prefix + "_tensor")) {
    found = {tensor->type(), tensor->elements()};
    ++count;
  }
  if (count != 1) {
    fail(ErrorCode::invalid_attribute,
         "one of {0}_strings, {0}_int64s, {0}_floats and {0}_tensor must be given, {1} are", prefix, count);
  }
  return *found;
}

Tensor read_listed_tensor(const ir::Node& node, const std::string& prefix) {
  switch (node.tensor_attribute(prefix + "_tensor") ? ElementType::undefined : listed_tensor(node, prefix).type) {
    case ElementType::string:
      return vector_of(node.strings_attribute(prefix + "_strings"));
    case ElementType::int64:
      return vector_of(node.ints_attribute(prefix + "_int64s"));
    case ElementType::float32:
      return vector_of(node.floats_attribute(prefix + "_floats"));
    default:
      return *node.tensor_attribute(prefix + "_tensor");
  }
}

}  // namespace tenon::ops
