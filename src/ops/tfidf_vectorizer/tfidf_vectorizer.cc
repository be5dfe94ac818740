#include <algorithm>

#include "base/checked.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// [C] to [features], [N, C] to [N, features].
void infer_tfidf(Inference& i) {
  // Looked at in place: rules run in every run, and the list is long.
  const auto* columns = std::get_if<std::vector<int64_t>>(&i.node().attribute("ngram_indexes")->value);
  if (!columns || columns->empty() || std::ranges::min(*columns) < 0) {
    i.fail_with(ErrorCode::invalid_attribute, "ngram_indexes must have numbers from 0 on");
  }
  if (!i.has_shape(0)) return i.output(0, ElementType::float32, std::nullopt);
  if (i.rank(0) != 1 && i.rank(0) != 2) i.fail("input 0 must be [C] or [N, C], it has rank {}", i.rank(0));
  SymbolicShape shape = i.shape(0);
  shape.back() = Dim(checked_add(std::ranges::max(*columns), 1));
  i.output(0, ElementType::float32, std::move(shape));
}

}  // namespace

void define_tfidf_vectorizer(OperatorList& list) {
  list.add("TfIdfVectorizer", {9})
      .input("X", types::index | types::strings)
      .output("Y", TypeSet{ElementType::float32})
      .required_attribute("mode", AttributeKind::string)
      .required_attribute("min_gram_length", AttributeKind::int_)
      .required_attribute("max_gram_length", AttributeKind::int_)
      .required_attribute("max_skip_count", AttributeKind::int_)
      .required_attribute("ngram_counts", AttributeKind::ints)
      .required_attribute("ngram_indexes", AttributeKind::ints)
      .attribute("pool_int64s", AttributeKind::ints)
      .attribute("pool_strings", AttributeKind::strings)
      .attribute("weights", AttributeKind::floats)
      .infer(infer_tfidf);
}

}  // namespace tenon::ops
