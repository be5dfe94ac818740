#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void check_reduction(const Inference& i) {
  std::string reduction = i.node().string_attribute("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return;
  }
  i.fail_with(ErrorCode::invalid_attribute,
              fmt::format("reduction '{}' is not one of none, add, mul, max, min", reduction));
}

void infer_scatter_elements(Inference& i) {
  check_reduction(i);
  i.same_as_input(0);
  if (!i.has_shape(1) || !i.has_shape(2)) return;
  if (i.rank(1) != i.rank(2)) i.fail("indices have rank {}, updates rank {}", i.rank(1), i.rank(2));
  for (size_t a = 0; a < i.shape(1).size(); ++a) i.equal(i.shape(1)[a], i.shape(2)[a], "sizes of indices and updates");
  if (!i.has_shape(0)) return;
  if (i.rank(0) != i.rank(1)) i.fail("data has rank {}, indices rank {}", i.rank(0), i.rank(1));
  auto axis = static_cast<size_t>(i.axis(i.node().int_attribute("axis", 0), i.rank(0)));
  for (size_t a = 0; a < i.shape(0).size(); ++a) {
    const Dim &data = i.shape(0)[a], &indices = i.shape(1)[a];
    if (a != axis && data.is_known() && indices.is_known() && indices.value() > data.value()) {
      i.fail("indices have size {} on axis {}, data only {}", indices.value(), a, data.value());
    }
  }
}

void infer_scatter_nd(Inference& i) {
  check_reduction(i);
  i.same_as_input(0);
  if (!i.has_shape(0) || !i.has_shape(1) || !i.has_shape(2)) return;
  i.require_rank_at_least(0, 1);
  i.require_rank_at_least(1, 1);
  const SymbolicShape &data = i.shape(0), &indices = i.shape(1), &updates = i.shape(2);
  if (!indices.back().is_known()) return;
  int64_t depth = indices.back().value();
  if (depth < 0 || depth > i.rank(0)) i.fail("the last size of indices is {}; it may be at most {}", depth, i.rank(0));
  SymbolicShape wanted(indices.begin(), indices.end() - 1);
  for (const Dim* dim = data.begin() + depth; dim != data.end(); ++dim) wanted.push_back(*dim);
  bool fits = wanted.size() == updates.size();
  for (size_t a = 0; fits && a < wanted.size(); ++a) {
    fits = !wanted[a].is_known() || !updates[a].is_known() || wanted[a] == updates[a];
  }
  if (!fits) i.fail("updates have shape {}, data and indices ask for {}", to_string(updates), to_string(wanted));
}

void infer_tensor_scatter(Inference& i) {
  std::string mode = i.node().string_attribute("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("mode '{}' is not one of linear, circular", mode));
  }
  i.same_as_input(0);
  if (!i.has_shape(0)) return;
  int axis = i.axis(i.node().int_attribute("axis", -2), i.rank(0));
  if (axis == 0) i.fail_with(ErrorCode::invalid_attribute, "axis 0 is the batch; another one must be the sequence");
  const SymbolicShape& cache = i.shape(0);
  if (i.has_shape(2) && (i.rank(2) != 1)) i.fail("write_indices must have rank 1, they have rank {}", i.rank(2));
  if (i.has_shape(2)) i.equal(i.shape(2)[0], cache[0], "the number of write_indices and the batch");
  if (!i.has_shape(1)) return;
  if (i.rank(1) != i.rank(0)) i.fail("the cache has rank {}, the update rank {}", i.rank(0), i.rank(1));
  for (int a = 0; a < i.rank(0); ++a) {
    const Dim &old_size = cache[static_cast<size_t>(a)], &new_size = i.shape(1)[static_cast<size_t>(a)];
    if (a != axis) {
      i.equal(old_size, new_size, "sizes of cache and update");
    } else if (old_size.is_known() && new_size.is_known() && new_size.value() > old_size.value()) {
      i.fail("the update has length {}, the cache only {}", new_size.value(), old_size.value());
    }
  }
}

std::string no_extremes(ir::Node& node) {
  const std::string reduction = node.string_attribute("reduction", "none");
  if (reduction == "max" || reduction == "min") return "reduction '" + reduction + "' came with version 18";
  return {};
}

std::string become_scatter(ir::Node& node) {
  node.op_type = "Scatter";
  return axes_from_front(node);
}

void become_scatter_elements(ir::Node& node) { node.op_type = "ScatterElements"; }

}  // namespace

void define_scatter(OperatorList& list) {
  list.add("ScatterElements", {11, 13, 16, 18})
      .input("data", "T")
      .input("indices", "Tind")
      .input("updates", "T")
      .output("output", "T")
      .types("T", types::movable)
      .types("Tind", types::index)
      .attribute("axis", AttributeKind::int_)
      .attribute("reduction", AttributeKind::string)
      .infer(infer_scatter_elements)
      .lower(18, 16, no_extremes)
      .lower(11, 9, become_scatter)
      .attribute_since(16, "reduction", "none");
  list.add("ScatterND", {11, 13, 16, 18})
      .input("data", "T")
      .input("indices", TypeSet{ElementType::int64})
      .input("updates", "T")
      .output("output", "T")
      .types("T", types::movable)
      .attribute("reduction", AttributeKind::string)
      .infer(infer_scatter_nd)
      .lower(18, 16, no_extremes)
      .attribute_since(16, "reduction", "none");
  list.add("Scatter", {9, 11})
      .input("data", "T")
      .input("indices", "Tind")
      .input("updates", "T")
      .output("output", "T")
      .types("T", types::movable)
      .types("Tind", types::index)
      .attribute("axis", AttributeKind::int_)
      .infer(infer_scatter_elements)
      .lift(9, 11, become_scatter_elements)
      .lift(11, 12, become_scatter_elements);
  list.add("TensorScatter", {24})
      .input("past_cache", "T")
      .input("update", "T")
      .optional_input("write_indices", TypeSet{ElementType::int64})
      .output("present_cache", "T")
      .types("T", types::all)
      .attribute("axis", AttributeKind::int_)
      .attribute("mode", AttributeKind::string)
      .infer(infer_tensor_scatter);
}

}  // namespace tenon::ops
