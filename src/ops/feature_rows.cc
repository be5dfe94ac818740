#include "ops/feature_rows.h"

#include <algorithm>

namespace tenon::ops {

Dim row_count(const Inference& i) {
  if (!i.has_shape(0)) return Dim::unknown();
  if (i.rank(0) != 1 && i.rank(0) != 2) i.fail("input 0 must be [N, F] or [F], it has rank {}", i.rank(0));
  return i.rank(0) == 2 ? i.shape(0)[0] : Dim(1);
}

Dim feature_count(const Inference& i) { return i.has_shape(0) && i.rank(0) > 0 ? i.shape(0).back() : Dim::unknown(); }

int64_t list_length(const ir::Node& node, std::string_view attribute) {
  const ir::Attribute* found = node.attribute(attribute);
  if (!found) return 0;
  if (auto* numbers = std::get_if<std::vector<float>>(&found->value)) return static_cast<int64_t>(numbers->size());
  if (auto* ints = std::get_if<std::vector<int64_t>>(&found->value)) return static_cast<int64_t>(ints->size());
  if (auto* texts = std::get_if<std::vector<std::string>>(&found->value)) return static_cast<int64_t>(texts->size());
  return 0;
}

int64_t label_count(const ir::Node& node, std::string_view ints_attribute, std::string_view strings_attribute) {
  const int64_t strings = list_length(node, strings_attribute);
  return strings > 0 ? strings : list_length(node, ints_attribute);
}

void infer_classifier(Inference& i, std::string_view strings_attribute, Dim scores) {
  const Dim rows = row_count(i);
  const bool strings = list_length(i.node(), strings_attribute) > 0;
  i.output(0, strings ? ElementType::string : ElementType::int64, SymbolicShape{rows});
  i.output(1, ElementType::float32, SymbolicShape{rows, std::move(scores)});
}

void require_one_of(const Inference& i, std::string_view attribute, std::initializer_list<std::string_view> allowed) {
  const std::string given = i.node().string_attribute(attribute, *allowed.begin());
  if (std::ranges::find(allowed, given) != allowed.end()) return;
  std::string list;
  for (std::string_view name : allowed) list += fmt::format("{}'{}'", list.empty() ? "" : ", ", name);
  i.fail_with(ErrorCode::invalid_attribute, fmt::format("{} is '{}'; it may be one of {}", attribute, given, list));
}

void require_post_transform(const Inference& i) {
  require_one_of(i, "post_transform", {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
}

}  // namespace tenon::ops
