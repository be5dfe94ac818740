#include "ops/feature_rows.h"
#include "ops/ml_encode/key_values.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_label_encoder(Inference& i) {
  const ListedTensor keys = listed_tensor(i.node(), "keys"), values = listed_tensor(i.node(), "values");
  if (keys.length != values.length) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("there are {} keys and {} values", keys.length, values.length));
  }
  if (i.type(0).known() && keys.type != i.element(0)) {
    i.fail_with(ErrorCode::type_mismatch,
                fmt::format("the keys are {}, the input is {}", name_of(keys.type), name_of(i.element(0))));
  }
  i.output(0, values.type, i.type(0).shape);
}

// Strings to integers or integers to strings.
void infer_category_mapper(Inference& i) {
  const int64_t ints = list_length(i.node(), "cats_int64s"), strings = list_length(i.node(), "cats_strings");
  if (ints != strings) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("there are {} cats_int64s and {} cats_strings", ints, strings));
  }
  if (!i.type(0).known()) return;
  i.output(0, i.element(0) == ElementType::string ? ElementType::int64 : ElementType::string, i.type(0).shape);
}

void infer_one_hot_encoder(Inference& i) {
  const int64_t ints = list_length(i.node(), "cats_int64s"), strings = list_length(i.node(), "cats_strings");
  if ((ints > 0) == (strings > 0)) {
    i.fail_with(ErrorCode::invalid_attribute, "one of cats_int64s and cats_strings must be given, and only one");
  }
  if (i.type(0).known() && (strings > 0) != (i.element(0) == ElementType::string)) {
    i.fail_with(ErrorCode::type_mismatch, fmt::format("the categories are {}, the input is {}",
                                                      strings > 0 ? "strings" : "integers", name_of(i.element(0))));
  }
  std::optional<SymbolicShape> shape = i.type(0).shape;
  if (shape) shape->push_back(Dim(ints + strings));
  i.output(0, ElementType::float32, std::move(shape));
}

// Version 1 had one list of strings, whose positions were the integers: what a CategoryMapper does.
void become_category_mapper(ir::Node& node) {
  node.op_type = "CategoryMapper";
  std::vector<std::string> classes = node.strings_attribute("classes_strings");
  std::vector<int64_t> positions(classes.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
  node.remove_attribute("classes_strings");
  node.set_attribute(ir::Attribute("cats_strings", std::move(classes)));
  node.set_attribute(ir::Attribute("cats_int64s", std::move(positions)));
}

// The attribute that has what a tensor of keys, values or the default has, as `single` or `list` with its type's
// suffix.
bool tensor_to_attribute(ir::Node& node, const std::string& name, bool single) {
  const Tensor* tensor = node.tensor_attribute(name + "_tensor");
  if (!tensor) return true;
  auto set = [&]<typename T>(const char* type, std::span<const T> values) {
    std::string attribute = name + "_" + type + (single ? "" : "s");
    if (single)
      node.set_attribute({std::move(attribute), T(values[0])});
    else
      node.set_attribute({std::move(attribute), std::vector<T>(values.begin(), values.end())});
    node.remove_attribute(name + "_tensor");
    return true;
  };
  const Tensor content = *tensor;
  if (content.elements() == 0) return false;
  if (content.type() == ElementType::float32) return set("float", content.data<float>());
  if (content.type() == ElementType::int64) return set("int64", content.data<int64_t>());
  if (content.type() == ElementType::string) return set("string", content.data<std::string>());
  return false;
}

std::string tensors_to_lists(ir::Node& node) {
  for (const char* name : {"keys_tensor", "values_tensor", "default_tensor"}) {
    const Tensor* tensor = node.tensor_attribute(name);
    const TypeSet listed{ElementType::float32, ElementType::int64, ElementType::string};
    if (tensor && (!listed.contains(tensor->type()) || tensor->elements() == 0))
      return "before version 4 it mapped strings, int64 and float32 only";
  }
  tensor_to_attribute(node, "keys", false);
  tensor_to_attribute(node, "values", false);
  tensor_to_attribute(node, "default", true);
  return {};
}

// Strings to integers, or the other way round, with the defaults that a CategoryMapper has.
std::string stay_category_mapper(ir::Node& node) {
  const bool from_strings = node.attribute("keys_strings") && node.attribute("values_int64s"),
             to_strings = node.attribute("keys_int64s") && node.attribute("values_strings");
  if (!from_strings && !to_strings) return "before version 2 it mapped between strings and int64 only";
  std::vector<std::string> texts = node.strings_attribute(from_strings ? "keys_strings" : "values_strings");
  std::vector<int64_t> numbers = node.ints_attribute(from_strings ? "values_int64s" : "keys_int64s");
  const int64_t number = node.int_attribute("default_int64", -1);
  std::string text = node.string_attribute("default_string", "_Unused");
  node.op_type = "CategoryMapper";
  node.attributes.clear();
  node.set_attribute({"cats_strings", std::move(texts)});
  node.set_attribute({"cats_int64s", std::move(numbers)});
  node.set_attribute({"default_int64", number});
  node.set_attribute({"default_string", std::move(text)});
  return {};
}

}  // namespace

void define_ml_encode(OperatorList& list) {
  constexpr TypeSet categories = types::strings | TypeSet{ElementType::int64};
  constexpr TypeSet labels =
      categories | TypeSet{ElementType::float32, ElementType::int32, ElementType::int16, ElementType::float64};
  list.add("CategoryMapper", {1}, ai_onnx_ml)
      .input("X", categories)
      .output("Y", categories)
      .attribute("cats_int64s", AttributeKind::ints)
      .attribute("cats_strings", AttributeKind::strings)
      .attribute("default_int64", AttributeKind::int_)
      .attribute("default_string", AttributeKind::string)
      .infer(infer_category_mapper);
  list.add("LabelEncoder", {1, 2, 4}, ai_onnx_ml)
      .input("X", labels)
      .output("Y", labels)
      .attribute("default_float", AttributeKind::float_)
      .attribute("default_int64", AttributeKind::int_)
      .attribute("default_string", AttributeKind::string)
      .attribute("default_tensor", AttributeKind::tensor)
      .attribute("keys_floats", AttributeKind::floats)
      .attribute("keys_int64s", AttributeKind::ints)
      .attribute("keys_strings", AttributeKind::strings)
      .attribute("keys_tensor", AttributeKind::tensor)
      .attribute("values_floats", AttributeKind::floats)
      .attribute("values_int64s", AttributeKind::ints)
      .attribute("values_strings", AttributeKind::strings)
      .attribute("values_tensor", AttributeKind::tensor)
      .infer(infer_label_encoder)
      .lift(1, 2, become_category_mapper)
      .lower(4, 2, tensors_to_lists)
      .lower(2, 1, stay_category_mapper);
  list.add("OneHotEncoder", {1}, ai_onnx_ml)
      .input("X", categories | TypeSet{ElementType::int32, ElementType::float32, ElementType::float64})
      .output("Y", TypeSet{ElementType::float32})
      .attribute("cats_int64s", AttributeKind::ints)
      .attribute("cats_strings", AttributeKind::strings)
      .attribute("zeros", AttributeKind::int_)
      .infer(infer_one_hot_encoder);
}

}  // namespace tenon::ops
