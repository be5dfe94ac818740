// Where a model has an old size baked in, and how each place can follow the new one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/infer.h"

namespace tenon::tools {

// One element of a shape.
struct ShapeEntry {
  enum class From : uint8_t { number, size, old } from = From::number;  // `n`, `n` times the new size, the old n-th
  int64_t n = 0;
};

// One change of a node.
struct BatchEdit {
  enum class Kind : uint8_t {
    shape,     // an input becomes the integers `entries`
    expand,    // an input gets as many rows along axis `position` as the new size says
    constant,  // an input becomes `tensor`
    count,     // an input becomes the new size, as a scalar
    reshape,   // the node becomes a Reshape to `entries` that keeps rows together: see below
    gather     // it looks up its indices in each row: `rows` is the shape of these, `entries` that of the result
  };
  Kind kind = Kind::shape;
  size_t input = 0;
  std::vector<ShapeEntry> entries = {}, rows = {};
  size_t position = 0;
  int64_t rank = 0;    // of the input; with `gather`: of the indices
  Tensor tensor = {};  // with `expand`: what is expanded, if it is not the input itself
  // With `reshape`: the axis with rows moves from here to the front before, and from there to `position` after; -1:
  // nothing moves.
  int rows_axis = -1;
  int64_t result_rank = 0;
  std::string what = {};
};

struct BatchFinding {
  const ir::Node* node = nullptr;
  std::optional<BatchEdit> edit;  // else `reason` says what is in the way
  std::string constant, reason;
};

// What becomes of a size: `old_size` was written in the model, `size` is what takes its place.
struct FreedSize {
  Dim size;
  int64_t old_size = 1;

  bool occurs_in(const Dim& dim) const;
  // Whether `now` is what `before` becomes.
  bool replaces(const Dim& before, const Dim& now) const;
  Dim freed(const Dim& before) const;
  // The one axis along which a shape has grown; nothing if there is none, or if more has changed.
  std::optional<size_t> axis(const SymbolicShape& before, const SymbolicShape& now) const;
};

// Types of all values by a name that is unique in the model.
using TypesByName = std::map<std::string, ir::Type>;
std::string unique_name(const ir::Value& value);
TypesByName types_of(ir::Graph& graph);

// The first node, in order, that does not follow the new size. `facts` are what is inferred with it as far as that
// went, `before` the types of the model as it was.
std::optional<BatchFinding> find_baked(ir::Graph& graph, const passes::InferenceResult& facts,
                                       const TypesByName& before, const FreedSize& size);

}  // namespace tenon::tools
