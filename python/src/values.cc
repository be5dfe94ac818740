#include "bindings.h"

namespace tenon::python {
namespace {

// What is in the parentheses: "tensor(float)" of "seq(tensor(float))".
std::string_view inner_type(std::string_view type) {
  const size_t open = type.find('(');
  if (open == std::string_view::npos || !type.ends_with(')')) return "";
  return type.substr(open + 1, type.size() - open - 2);
}

ElementType element_in(std::string_view type) {
  const std::string_view name = inner_type(type);
  return name.empty() || name == "?" ? ElementType::undefined
                                     : element_type_from_name(name).value_or(ElementType::undefined);
}

Value import_sequence(nb::handle object, std::string_view item_type) {
  if (!nb::hasattr(object, "__iter__") || nb::isinstance<nb::str>(object) || nb::isinstance<nb::dict>(object)) {
    throw Error(ErrorCode::type_mismatch,
                std::string("a sequence is given as a list, got ") + nb::type_name(object.type()).c_str());
  }
  Sequence sequence;
  for (nb::handle item : nb::iter(object)) sequence.items.push_back(import_value(item, item_type));
  return sequence;
}

Value import_map(nb::handle object, std::string_view type) {
  if (!nb::isinstance<nb::dict>(object)) {
    throw Error(ErrorCode::type_mismatch,
                std::string("a map is given as a dict, got ") + nb::type_name(object.type()).c_str());
  }
  const std::string_view inside = inner_type(type);
  const size_t comma = inside.find(',');
  ElementType key_type = ElementType::undefined, value_type = ElementType::undefined;
  if (comma != std::string_view::npos) {
    key_type = element_type_from_name(inside.substr(0, comma)).value_or(ElementType::undefined);
    value_type = element_in(inside.substr(inside.find_first_not_of(' ', comma + 1)));
  }
  const nb::dict dict = nb::borrow<nb::dict>(object);
  return Map{import_tensor(dict.keys(), key_type), import_tensor(dict.values(), value_type)};
}

constinit ModuleAttribute asarray("numpy", "asarray");
constinit ModuleAttribute to_numpy("tenon._arrays", "to_numpy");
constinit ModuleAttribute to_dict("tenon._arrays", "to_dict");

nb::object export_tensor(const Tensor& tensor) {
  nb::object wrapped = nb::cast(tensor);
  if (is_on_gpu(tensor)) return wrapped;
  return buffer_format(tensor.type()) ? asarray.get()(wrapped) : to_numpy.get()(wrapped);
}

// An element of a type that maps of classifiers have; nothing of the others.
nb::object plain_element(const Tensor& tensor, size_t i) {
  switch (tensor.type()) {
    case ElementType::int64:
      return nb::int_(tensor.data<int64_t>()[i]);
    case ElementType::float32:
      return nb::float_(tensor.data<float>()[i]);
    case ElementType::string:
      return python_text(tensor.data<std::string>()[i]);
    default:
      return {};
  }
}

nb::object export_map(const Map& map) {
  nb::dict result;
  const auto count = static_cast<size_t>(map.keys.elements());
  for (size_t i = 0; i < count; ++i) {
    const nb::object key = plain_element(map.keys, i), element = plain_element(map.values, i);
    if (!key.is_valid() || !element.is_valid()) return to_dict.get()(map.keys, map.values);
    result[key] = element;
  }
  return result;
}

// What is inside of another value can be shared with inputs or weights, and Python may write into what it gets.
nb::object export_item(const Value& value) {
  return value.is_tensor() ? export_tensor(value.tensor().clone()) : export_value(value);
}

}  // namespace

Value import_value(nb::handle object, std::string_view type, Memory memory) {
  if (!is_numpy_array(object) && nb::isinstance<SparseTensor>(object)) return nb::cast<SparseTensor>(object);
  if (type.starts_with("optional(")) {
    if (object.is_none()) return Optional{};
    return Optional{std::make_shared<const Value>(import_value(object, inner_type(type)))};
  }
  if (type.starts_with("seq(")) return import_sequence(object, inner_type(type));
  if (type.starts_with("map(")) return import_map(object, type);
  if (type.empty() || type == "?") {
    if (object.is_none()) return Optional{};
    if (nb::isinstance<nb::dict>(object)) return import_map(object, "");
  }
  if (object.is_none()) throw Error(ErrorCode::type_mismatch, "the model takes " + std::string(type) + ", got None");
  return import_tensor(object, element_in(type), ReadOnly::share, memory);
}

nb::object export_value(const Value& value) {
  if (value.is_tensor()) return export_tensor(value.tensor());
  if (value.is_sequence()) {
    nb::list items;
    for (const Value& item : value.sequence().items) items.append(export_item(item));
    return items;
  }
  if (value.is_map()) return export_map(value.map());
  if (value.is_optional()) return value.optional().item ? export_item(*value.optional().item) : nb::none();
  if (value.is_sparse()) {
    const SparseTensor& sparse = value.sparse();
    return nb::cast(SparseTensor{sparse.values.clone(), sparse.indices.clone(), sparse.shape});
  }
  return nb::none();
}

std::string text_of(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  throw nb::type_error((std::string("expected a string, got ") + nb::type_name(object.type()).c_str()).c_str());
}

std::vector<std::string> words(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return {text_of(object)};
  std::vector<std::string> result;
  for (nb::handle item : nb::iter(object)) result.push_back(text_of(item));
  return result;
}

}  // namespace tenon::python
