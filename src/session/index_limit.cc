#include "session/index_limit.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "ops/operator.h"

namespace tenon {
namespace {

// Operators whose first input's elements, or all inputs', are those of the output.
constexpr std::string_view moving[] = {"Cast",   "Identity",  "Reshape", "Flatten", "Squeeze", "Unsqueeze",
                                       "Expand", "Transpose", "Slice",   "Tile",    "Split",   "Gather"};
// Operators whose second input has positions along one axis of the first.
constexpr std::string_view along_an_axis[] = {"Gather", "GatherElements", "ScatterElements"};
// Those whose second input has a position along each of the first axes, of which some may be a batch.
constexpr std::string_view along_axes[] = {"GatherND", "ScatterND"};

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

template <size_t size>
bool is_one_of(const std::string_view (&list)[size], const ir::Node& node) {
  return node.domain.empty() && std::ranges::find(list, node.op_type) != std::end(list);
}

int64_t known_size(const SymbolicShape& shape, int64_t axis) {
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) return unlimited;
  const Dim& size = shape[static_cast<size_t>(axis)];
  return size.is_known() && size.value() > 0 ? size.value() : unlimited;
}

class Follower {
 public:
  int64_t limit = unlimited;

  void follow(const ir::Value& value) {
    if (!seen_.insert(&value).second) return;
    for (const ir::Node* node : value.users()) read(*node, value);
  }

 private:
  void read(const ir::Node& node, const ir::Value& value) {
    const bool first = node.input(0) == &value, second = node.input(1) == &value;
    if (second && node.input(0) && node.input(0)->type.shape) index(node, *node.input(0)->type.shape, value);
    if (first && node.op_type == "OneHot" && node.domain.empty()) choose_one(node);
    const bool moves = (first && is_one_of(moving, node)) || (node.op_type == "Concat" && node.domain.empty());
    if (!moves) return;
    for (const ir::Value* output : node.outputs()) {
      if (output && ops::types::ints.contains(output->type.element)) follow(*output);
    }
  }

  void index(const ir::Node& node, const SymbolicShape& data, const ir::Value& indices) {
    if (is_one_of(along_an_axis, node)) limit = std::min(limit, known_size(data, node.int_attribute("axis", 0)));
    if (!is_one_of(along_axes, node) || !indices.type.shape || indices.type.shape->empty()) return;
    const Dim& count = indices.type.shape->back();
    const int64_t batch = node.int_attribute("batch_dims", 0);
    for (int64_t i = 0; count.is_known() && i < count.value(); ++i)
      limit = std::min(limit, known_size(data, batch + i));
  }

  void choose_one(const ir::Node& node) {
    const ir::Value* depth = node.input(1);
    if (!depth || !depth->is_fixed() || depth->type.element != ElementType::int64) return;
    if (depth->constant()->tensor.elements() == 1 && depth->constant()->tensor.data<int64_t>()[0] > 0)
      limit = std::min(limit, depth->constant()->tensor.data<int64_t>()[0]);
  }

  std::unordered_set<const ir::Value*> seen_;
};

}  // namespace

int64_t index_limit(const ir::Value& value) {
  if (!value.type.is_tensor() || !ops::types::ints.contains(value.type.element)) return 0;
  Follower follower;
  follower.follow(value);
  return follower.limit == unlimited ? 0 : follower.limit;
}

}  // namespace tenon
