#include "ops/cost.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// How the three operators differ: gates per cell, and whether there is a cell state.
struct Cell {
  const char* name;
  std::vector<int> versions;
  int64_t gates;
  bool has_state;
};

void check(const Inference& i, size_t input, std::initializer_list<Dim> wanted, const char* name) {
  if (!i.has_input(input)) return;
  i.require_rank(input, static_cast<int>(wanted.size()));
  if (!i.has_shape(input)) return;
  size_t axis = 0;
  for (const Dim& dim : wanted) {
    i.equal(i.shape(input)[axis], dim, fmt::format("axis {} of {} and what the other inputs say", axis, name));
    ++axis;
  }
}

void infer_recurrent(Inference& i, const Cell& cell) {
  std::string direction = i.node().string_attribute("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("direction is '{}'; it may be forward, reverse or bidirectional", direction));
  }
  bool batch_first = i.node().int_attribute("layout", 0) != 0;
  Dim directions = direction == "bidirectional" ? 2 : 1;
  Dim sequence = Dim::unknown(), batch = Dim::unknown(), hidden = Dim::unknown(), size = Dim::unknown();
  i.require_rank(0, 3);
  i.require_rank(2, 3);
  if (i.has_shape(0)) {
    sequence = i.shape(0)[batch_first ? 1 : 0];
    batch = i.shape(0)[batch_first ? 0 : 1];
    size = i.shape(0)[2];
  }
  if (i.has_shape(2)) hidden = i.shape(2)[2];
  if (i.node().attribute("hidden_size")) {
    hidden = i.equal(Dim(i.node().int_attribute("hidden_size", 0)), hidden, "hidden_size and the last axis of R");
  }
  Dim rows = hidden * cell.gates;
  check(i, 1, {directions, rows, size}, "W");
  check(i, 2, {directions, rows, hidden}, "R");
  check(i, 3, {directions, rows * 2}, "B");
  check(i, 4, {batch}, "sequence_lens");
  for (size_t input : {5, 6}) {
    const char* name = input == 5 ? "initial_h" : "initial_c";
    if (input == 6 && !cell.has_state) continue;
    if (batch_first)
      check(i, input, {batch, directions, hidden}, name);
    else
      check(i, input, {directions, batch, hidden}, name);
  }
  if (cell.has_state) check(i, 7, {directions, hidden * 3}, "P");
  SymbolicShape all = batch_first ? SymbolicShape{batch, sequence, directions, hidden}
                                  : SymbolicShape{sequence, directions, batch, hidden};
  SymbolicShape last =
      batch_first ? SymbolicShape{batch, directions, hidden} : SymbolicShape{directions, batch, hidden};
  i.output(0, i.element(0), std::move(all));
  i.output(1, i.element(0), last);
  i.output(2, i.element(0), std::move(last));
}

// Until version 7 it said whether Y is an output; the node's outputs say that themselves.
void drop_output_sequence(ir::Node& node) { node.remove_attribute("output_sequence"); }

// An element of Y takes a row of W and one of R for each gate.
Dim multiply_adds_of_cell(const ir::Node&, std::span<const CostTensor> inputs) {
  if (inputs.size() < 3 || !inputs[2].shape || inputs[1].shape->size() != 3 || inputs[2].shape->size() != 3)
    return Dim::unknown();
  const SymbolicShape &w = *inputs[1].shape, &r = *inputs[2].shape;
  return exact_div(w[1], r[2]) * (w[2] + r[2]);
}

Operator& add(OperatorList& list, const Cell& cell) {
  Operator& op = list.add(cell.name, cell.versions)
                     .input("X", "T")
                     .input("W", "T")
                     .input("R", "T")
                     .optional_input("B", "T")
                     .optional_input("sequence_lens", TypeSet{ElementType::int32})
                     .optional_input("initial_h", "T");
  if (cell.has_state) op.optional_input("initial_c", "T").optional_input("P", "T");
  op.optional_output("Y", "T").optional_output("Y_h", "T");
  if (cell.has_state) op.optional_output("Y_c", "T");
  return op.types("T", types::floats)
      .attribute("activation_alpha", AttributeKind::floats)
      .attribute("activation_beta", AttributeKind::floats)
      .attribute("activations", AttributeKind::strings)
      .attribute("clip", AttributeKind::float_)
      .attribute("direction", AttributeKind::string)
      .attribute("hidden_size", AttributeKind::int_)
      .attribute("layout", AttributeKind::int_)
      .infer([cell](Inference& i) { infer_recurrent(i, cell); })
      .costs(multiply_adds_of_cell)
      .lift(1, 7, drop_output_sequence)
      .attribute_since(14, "layout", 0);
}

}  // namespace

void define_recurrent(OperatorList& list) {
  add(list, {"RNN", {1, 7, 14, 22}, 1, false});
  add(list, {"GRU", {1, 3, 7, 14, 22}, 3, false})
      .attribute("linear_before_reset", AttributeKind::int_)
      .attribute_since(3, "linear_before_reset", 0);
  add(list, {"LSTM", {1, 7, 14, 22}, 4, true}).attribute("input_forget", AttributeKind::int_);
}

}  // namespace tenon::ops
