#include "tenon/value.h"

#include "base/fail.h"

namespace tenon {
namespace {

template <typename T, typename Content>
auto& get(Content& content, const char* wanted, const Value& value) {
  auto* found = std::get_if<T>(&content);
  if (!found) fail(ErrorCode::type_mismatch, "expected {}, got {}", wanted, value.describe());
  return *found;
}

}  // namespace

const Tensor& Value::tensor() const { return get<Tensor>(content_, "a tensor", *this); }
Tensor& Value::tensor() { return get<Tensor>(content_, "a tensor", *this); }
const SparseTensor& Value::sparse() const {
  return *get<std::shared_ptr<const SparseTensor>>(content_, "a sparse tensor", *this);
}
const Sequence& Value::sequence() const { return *get<std::shared_ptr<const Sequence>>(content_, "a sequence", *this); }
const Map& Value::map() const { return *get<std::shared_ptr<const Map>>(content_, "a map", *this); }
const Optional& Value::optional() const { return get<Optional>(content_, "an optional", *this); }

std::string Value::describe() const {
  if (is_tensor()) return fmt::format("{} {}", name_of(tensor().type()), tensor().shape().to_string());
  if (is_sparse()) return fmt::format("sparse {} {}", name_of(sparse().values.type()), sparse().shape.to_string());
  if (is_sequence()) return fmt::format("sequence of {}", sequence().items.size());
  if (is_map()) return fmt::format("map of {}", map().keys.elements());
  if (is_optional()) return optional().item ? "optional " + optional().item->describe() : "empty optional";
  return "nothing";
}

}  // namespace tenon
