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
      .attribute_since(4, "default_tensor")
      .attribute_since(4, "keys_tensor")
      .attribute_since(4, "values_tensor")
      .lift(1, 2, become_category_mapper);
  list.add("OneHotEncoder", {1}, ai_onnx_ml)
      .input("X", categories | TypeSet{ElementType::int32, ElementType::float32, ElementType::float64})
      .output("Y", TypeSet{ElementType::float32})
      .attribute("cats_int64s", AttributeKind::ints)
      .attribute("cats_strings", AttributeKind::strings)
      .attribute("zeros", AttributeKind::int_)
      .infer(infer_one_hot_encoder);
}

}  // namespace tenon::ops
