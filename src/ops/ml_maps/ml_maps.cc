#include "ops/feature_rows.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;
using ir::Type;

// The type of the values in map input 0, as far as known.
ElementType value_type(const Inference& i) {
  const Type& type = i.type(0);
  return type.kind == Type::Kind::map && type.inner ? type.inner->element : ElementType::undefined;
}

// [1, n]: the values in the order of their keys, or at the positions that the keys are.
void infer_cast_map(Inference& i) {
  require_one_of(i, "cast_to", {"TO_FLOAT", "TO_STRING", "TO_INT64"});
  require_one_of(i, "map_form", {"DENSE", "SPARSE"});
  const int64_t size = i.node().int_attribute("max_map", 1);
  const bool sparse = i.node().string_attribute("map_form", "DENSE") == "SPARSE";
  if (sparse && size < 0) i.fail_with(ErrorCode::invalid_attribute, fmt::format("max_map is {}", size));
  const std::string to = i.node().string_attribute("cast_to", "TO_FLOAT");
  const ElementType type = to == "TO_FLOAT"    ? ElementType::float32
                           : to == "TO_STRING" ? ElementType::string
                                               : ElementType::int64;
  i.output(0, type, SymbolicShape{Dim(1), sparse ? Dim(size) : Dim::unknown()});
}

void infer_dict_vectorizer(Inference& i) {
  const int64_t ints = list_length(i.node(), "int64_vocabulary"), strings = list_length(i.node(), "string_vocabulary");
  if ((ints > 0) == (strings > 0)) {
    i.fail_with(ErrorCode::invalid_attribute,
                "one of int64_vocabulary and string_vocabulary must be given, and only one");
  }
  i.output(0, value_type(i), SymbolicShape{Dim(1), Dim(ints + strings)});
}

// A map of each row, from labels to its scores.
void infer_zip_map(Inference& i) {
  const int64_t ints = list_length(i.node(), "classlabels_int64s"),
                strings = list_length(i.node(), "classlabels_strings");
  if ((ints > 0) == (strings > 0)) {
    i.fail_with(ErrorCode::invalid_attribute,
                "one of classlabels_int64s and classlabels_strings must be given, and only one");
  }
  row_count(i);
  const Dim columns = feature_count(i);
  if (columns.is_known() && columns.value() != ints + strings) {
    i.fail("there are {} labels for {} columns", ints + strings, columns.value());
  }
  const ElementType key = strings > 0 ? ElementType::string : ElementType::int64;
  i.output(0, Type::sequence(Type::map(key, Type::tensor(ElementType::float32, SymbolicShape{}))));
}

}  // namespace

void define_ml_maps(OperatorList& list) {
  constexpr TypeSet keys = types::strings | TypeSet{ElementType::int64};
  list.add("CastMap", {1}, ai_onnx_ml)
      .input("X", "T1")
      .output("Y", types::strings | TypeSet{ElementType::float32, ElementType::int64})
      .types("T1", TypeSet{ElementType::int64}, Kinds::map)
      .attribute("cast_to", AttributeKind::string)
      .attribute("map_form", AttributeKind::string)
      .attribute("max_map", AttributeKind::int_)
      .infer(infer_cast_map);
  list.add("DictVectorizer", {1}, ai_onnx_ml)
      .input("X", "T1")
      .output("Y", types::strings | TypeSet{ElementType::float32, ElementType::float64, ElementType::int64})
      .types("T1", keys, Kinds::map)
      .attribute("int64_vocabulary", AttributeKind::ints)
      .attribute("string_vocabulary", AttributeKind::strings)
      .infer(infer_dict_vectorizer);
  list.add("ZipMap", {1}, ai_onnx_ml)
      .input("X", TypeSet{ElementType::float32})
      .output("Z", "T")
      .types("T", keys, Kinds::sequence)
      .attribute("classlabels_int64s", AttributeKind::ints)
      .attribute("classlabels_strings", AttributeKind::strings)
      .infer(infer_zip_map);
}

}  // namespace tenon::ops
