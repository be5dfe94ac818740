#include "ops/elementwise.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// One more axis, for the parts; only the text says how many there are.
void infer_split(Inference& i) {
  std::optional<SymbolicShape> shape = i.type(0).shape;
  i.output(1, ElementType::int64, shape);
  if (shape) shape->push_back(Dim::unknown());
  i.output(0, ElementType::string, std::move(shape));
}

// [C] or [1, C], of which stop words are left out.
void infer_normalizer(Inference& i) {
  std::string action = i.node().string_attribute("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("case_change_action is '{}'; it may be 'LOWER', 'UPPER' or 'NONE'", action));
  }
  if (!i.has_shape(0)) return i.output(0, ElementType::string, std::nullopt);
  SymbolicShape shape = i.shape(0);
  if (shape.empty() || shape.size() > 2) i.fail("input 0 must be [C] or [1, C], it has rank {}", i.rank(0));
  if (shape.size() == 2 && shape[0].is_known() && !shape[0].is(1)) {
    i.fail("input 0 must be [C] or [1, C], its first size is {}", shape[0].value());
  }
  if (shape.size() == 2) shape[0] = Dim(1);
  shape.back() = Dim::unknown();
  i.output(0, ElementType::string, std::move(shape));
}

}  // namespace

void define_text(OperatorList& list) {
  list.add("StringConcat", {20})
      .input("X", types::strings)
      .input("Y", types::strings)
      .output("Z", types::strings)
      .infer([](Inference& i) { infer_broadcast(i, ElementType::string); });
  list.add("StringSplit", {20})
      .input("X", types::strings)
      .output("Y", types::strings)
      .output("Z", TypeSet{ElementType::int64})
      .attribute("delimiter", AttributeKind::string)
      .attribute("maxsplit", AttributeKind::int_)
      .infer(infer_split);
  list.add("StringNormalizer", {10})
      .input("X", types::strings)
      .output("Y", types::strings)
      .attribute("case_change_action", AttributeKind::string)
      .attribute("is_case_sensitive", AttributeKind::int_)
      .attribute("locale", AttributeKind::string)
      .attribute("stopwords", AttributeKind::strings)
      .infer(infer_normalizer);
}

}  // namespace tenon::ops
