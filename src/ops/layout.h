// Rules about memory: operators whose outputs are parts of their input, or whose inputs are parts of their output, need
// not move anything when the parts lie where they belong.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tenon::ops {

// What a rule sees: a node, the shapes of its tensors, and the integers in its inputs as far as they are known.
struct Layout {
  const ir::Node& node;
  std::span<const Shape*const> inputs, outputs;  // null where one is left out
  std::span<const Tensor* const> contents;       // of the inputs; null where only the run knows

  std::optional<std::vector<int64_t>> ints(size_t input) const;
};

// Where `part`, cut out of a tensor of shape `whole` at `starts`, begins in it, in elements; nullopt unless its
// elements are adjacent there.
std::optional<int64_t> adjacent_part(const Shape& whole, const Shape& part, std::span<const int64_t> starts);
// The same for a part that begins at `start` on one axis and at 0 on the others.
std::optional<int64_t> adjacent_part(const Shape& whole, const Shape& part, int axis, int64_t start);

// For operators that give their first input another shape.
inline std::optional<int64_t> whole_input(const Layout&, size_t) { return 0; }

// For those that repeat it, which is nothing to do when the size stays.
std::optional<int64_t> whole_input_of_same_size(const Layout& layout, size_t output);

}  // namespace tenon::ops
