#pragma once

#include <fmt/core.h>

#include <functional>
#include <optional>
#include <span>

#include "ir/graph.h"
#include "tenon/dim.h"
#include "tenon/error.h"

namespace tenon::ops {

using tenon::SymbolicValues;

// Longer tensors are data, not shapes: their values are not followed.
inline constexpr size_t most_values = 64;

// What is known about a value: before the model runs, or from the value itself while it runs.
struct Fact {
  ir::Type type;
  std::optional<SymbolicValues> values;  // content of a small integer tensor
  const Tensor* constant = nullptr;      // content, when it is known as a whole

  static Fact of(const Tensor& tensor);
};

// The content of an int32, int64 or bool tensor of rank 0 or 1 and at most `most_values` elements, as far as known:
// each element may be a number or an expression.
std::optional<SymbolicValues> values_of(const Fact& fact);
// The content as numbers, however many, if all are known.
std::optional<std::vector<int64_t>> ints_of(const Fact& fact);

// What an operator's inference rule sees and fills in. The same rule runs on symbolic shapes when a model is loaded and
// on real ones when it runs: an output whose shape it gives as numbers is allocated for the kernel, one it leaves
// unknown is allocated by the kernel itself.
class Inference {
 public:
  // Infers a subgraph: attribute name and facts of its inputs in, facts of its outputs out. Not available (null) while
  // the model runs.
  using InferSubgraph = std::function<std::vector<Fact>(std::string_view, std::span<const Fact>)>;

  // `wants_values`: whether anybody reads the content that output_values() gives.
  Inference(const ir::Node& node, std::span<const Fact* const> inputs, std::span<Fact> outputs,
            const InferSubgraph* subgraphs = nullptr, bool wants_values = true)
      : node_(node), inputs_(inputs), outputs_(outputs), subgraphs_(subgraphs), wants_values_(wants_values) {}

  const ir::Node& node() const { return node_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i]; }

  const ir::Type& type(size_t i) const { return inputs_[i]->type; }
  ElementType element(size_t i) const { return inputs_[i]->type.element; }
  // Whether the rank of a tensor input is known; shape() and rank() may be called only then.
  bool has_shape(size_t i) const { return has_input(i) && inputs_[i]->type.shape.has_value(); }
  const SymbolicShape& shape(size_t i) const { return *inputs_[i]->type.shape; }
  int rank(size_t i) const { return static_cast<int>(shape(i).size()); }
  // values_of and ints_of an input; nullopt when it is left out.
  std::optional<SymbolicValues> values(size_t i) const {
    note_content_read(i);
    return has_input(i) ? values_of(*inputs_[i]) : std::nullopt;
  }
  std::optional<std::vector<int64_t>> ints(size_t i) const {
    note_content_read(i);
    return has_input(i) ? ints_of(*inputs_[i]) : std::nullopt;
  }
  // values() of an input whose content only decides that of the outputs, not their shapes.
  std::optional<SymbolicValues> followed_values(size_t i) const {
    return wants_values_ && has_input(i) ? values_of(*inputs_[i]) : std::nullopt;
  }
  // The whole content, if known; else null.
  const Tensor* constant(size_t i) const {
    note_content_read(i);
    return has_input(i) ? inputs_[i]->constant : nullptr;
  }
  const Fact& fact(size_t i) const { return *inputs_[i]; }

  // Outputs. Those the node leaves out are ignored.
  void output(size_t i, ElementType element, std::optional<SymbolicShape> shape);
  void output(size_t i, ir::Type type);
  void output(size_t i, Fact fact);
  void output_values(size_t i, SymbolicValues values);
  // Whether anybody reads output_values: not while the model runs, where the values themselves are there.
  bool wants_values() const { return wants_values_; }
  // Whether the rule asked for the content of input i, to check it or to find a shape.
  bool has_read_content(size_t i) const { return i < 64 && (content_read_ >> i & 1); }
  void same_as_input(size_t input, size_t output_index = 0) { output(output_index, type(input)); }
  // What was said of output i so far.
  const ir::Type& output_type(size_t i) const { return outputs_[i].type; }
  bool wants_output(size_t i) const { return i < node_.output_count() && node_.output(i); }

  // `axis`, counted from the end when negative, as 0 … rank-1 (or rank, when `one_past` allows it); throws otherwise.
  int axis(int64_t axis, int rank, bool one_past = false) const;
  // The same for a list, which must have no axis twice.
  std::vector<int> axes(std::span<const int64_t> list, int rank) const;

  // The common size of two dims that must be equal; `what` says which, for the error.
  Dim equal(const Dim& a, const Dim& b, std::string_view what) const;
  // numpy's broadcasting of two shapes.
  SymbolicShape broadcast(const SymbolicShape& a, const SymbolicShape& b) const;
  void require_rank(size_t i, int wanted) const;
  void require_rank_at_least(size_t i, int wanted) const;

  std::optional<std::vector<Fact>> infer_subgraph(std::string_view attribute, std::span<const Fact> inputs) const;

  // The element type that an integer attribute names, or `otherwise` when it is absent.
  ElementType element_attribute(std::string_view name, ElementType otherwise = ElementType::undefined) const;

  // Throws a shape_mismatch that lists the inputs, what they are and who made them.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    fail_with(ErrorCode::shape_mismatch, fmt::format(text, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_with(ErrorCode code, const std::string& message) const;

 private:
  const ir::Node& node_;
  std::span<const Fact* const> inputs_;
  std::span<Fact> outputs_;
  const InferSubgraph* subgraphs_;
  bool wants_values_;
  mutable uint64_t content_read_ = 0;

  void note_content_read(size_t i) const {
    if (i < 64) content_read_ |= uint64_t{1} << i;
  }
};

// "input 'x' is tensor(float) [2, 3], made by Relu 'r' (node 4)", for error messages.
std::string describe_input(const ir::Node& node, size_t i, const ir::Type& type);

}  // namespace tenon::ops
