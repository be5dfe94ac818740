#include <numeric>
#include <utility>

#include "ops/cost.h"
#include "ops/fused_activation.h"
#include "ops/fused_types.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// numpy's matmul: vectors count as a row on the left and as a column on the right, and that axis goes again.
void infer_matmul(Inference& i) {
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  SymbolicShape a = i.shape(0), b = i.shape(1);
  if (a.empty() || b.empty()) i.fail("MatMul does not take scalars");
  bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  i.equal(a.back(), b[b.size() - 2], "the last axis of A and the second last of B");
  SymbolicShape batch = i.broadcast(SymbolicShape(a.begin(), a.end() - 2), SymbolicShape(b.begin(), b.end() - 2));
  if (!row) batch.push_back(a[a.size() - 2]);
  if (!column) batch.push_back(b.back());
  i.output(0, i.element(0), std::move(batch));
}

void infer_gemm(Inference& i) {
  i.require_rank(0, 2);
  i.require_rank(1, 2);
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  bool ta = i.node().int_attribute("transA", 0) != 0, tb = i.node().int_attribute("transB", 0) != 0;
  i.equal(i.shape(0)[ta ? 0 : 1], i.shape(1)[tb ? 1 : 0], "the inner sizes of A and B");
  SymbolicShape result{i.shape(0)[ta ? 1 : 0], i.shape(1)[tb ? 0 : 1]};
  if (i.has_shape(2) && i.broadcast(result, i.shape(2)).size() > 2)
    i.fail("C cannot be broadcast to {}", to_string(result));
  i.output(0, i.element(0), std::move(result));
}

// alpha * A @ B + bias, where transA and transB exchange the last two axes of A and B. Neither is a vector.
void infer_fused_matmul(Inference& i) {
  i.require_rank(2, 1);
  auto matrices = [&](size_t input, const char* transposed) {
    if (!i.has_shape(input)) return std::optional<SymbolicShape>();
    i.require_rank_at_least(input, 2);
    SymbolicShape shape = i.shape(input);
    if (i.node().int_attribute(transposed, 0) != 0) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return std::optional(shape);
  };
  const std::optional<SymbolicShape> a = matrices(0, "transA"), b = matrices(1, "transB");
  std::optional<SymbolicShape> output;
  if (a && b) {
    i.equal(a->back(), (*b)[b->size() - 2], "the inner sizes of A and B");
    output = i.broadcast(SymbolicShape(a->begin(), a->end() - 2), SymbolicShape(b->begin(), b->end() - 2));
    output->push_back((*a)[a->size() - 2]);
    output->push_back(b->back());
  }
  if (b && i.has_shape(2)) {
    const Dim columns = i.equal(b->back(), i.shape(2)[0], "the columns of B and the size of bias");
    if (output) output->back() = columns;
  }
  i.output(0, i.element(0), output);
  check_residual_and_activation(i, 3, output);
}

// Input i, with its last two axes exchanged where the attribute says so.
Term matrices(Decomposition& d, size_t i, const char* transposed) {
  Term x = d.input(i);
  if (d.node().int_attribute(transposed, 0) == 0) return x;
  if (d.known_rank(i) < 2) return d.add("Einsum", {x}, {{"equation", std::string("...ij->...ji")}});
  std::vector<int64_t> order(static_cast<size_t>(d.known_rank(i)));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

void decompose_fused_matmul(Decomposition& d) {
  Term y = d.add("MatMul", {matrices(d, 0, "transA"), matrices(d, 1, "transB")});
  if (const float alpha = d.node().float_attribute("alpha", 1); alpha != 1) y = y * alpha;
  if (d.has_input(2)) {
    // Only a run can tell then whether it fits, and Add would broadcast.
    const int rank = d.known_rank(1);
    const bool known = d.known_rank(2) >= 0 && d.known_size(2, 0) >= 0 && rank >= 2 && d.known_size(1, rank - 2) >= 0 &&
                       d.known_size(1, rank - 1) >= 0;
    y = y + (known ? d.input(2) : reshape(d.input(2), size_of(y, -1)));
  }
  output_with_residual_and_activation(d, y, 3);
}

// Before version 7 C was broadcast only when asked for; it is now whenever it fits.
void drop_broadcast(ir::Node& node) { node.remove_attribute("broadcast"); }

// Before version 11 C had to be there.
std::string give_c(ir::Node& node) {
  if (node.input(2)) return {};
  if (!node.input(0) || node.input(0)->type.element != ElementType::float32)
    return "its C is left out, and its type is not float32";
  node.set_input(2, &node.graph().add_constant(Tensor::scalar(0.0f), "C"));
  return {};
}

std::string allow_broadcast(ir::Node& node) {
  node.set_attribute({"broadcast", int64_t{1}});
  return {};
}

}  // namespace

void define_matmul(OperatorList& list) {
  constexpr TypeSet multipliable =
      types::floats | TypeSet{ElementType::int32, ElementType::int64, ElementType::uint32, ElementType::uint64};
  list.add("MatMul", {1, 9, 13})
      .input("A", "T")
      .input("B", "T")
      .output("Y", "T")
      .types("T", multipliable)
      .infer(infer_matmul)
      .costs(multiply_adds::of_matmul);
  with_residual_and_activation(list.add("FusedMatMul", {1}, tenon_domain)
                                   .input("A", "T")
                                   .input("B", "T")
                                   .optional_input("bias", "T")
                                   .output("Y", "T")
                                   .types("T", fused_types)
                                   .attribute("transA", AttributeKind::int_)
                                   .attribute("transB", AttributeKind::int_)
                                   .attribute("alpha", AttributeKind::float_))
      .infer(infer_fused_matmul)
      .decompose(decompose_fused_matmul)
      .costs(multiply_adds::of_gemm);
  list.add("Gemm", {1, 6, 7, 9, 11, 13})
      .input("A", "T")
      .input("B", "T")
      .optional_input("C", "T")
      .output("Y", "T")
      .types("T", multipliable)
      .attribute("alpha", AttributeKind::float_)
      .attribute("beta", AttributeKind::float_)
      .attribute("transA", AttributeKind::int_)
      .attribute("transB", AttributeKind::int_)
      .infer(infer_gemm)
      .costs(multiply_adds::of_gemm)
      .lift(1, 7, drop_broadcast)
      .lower(11, 7, give_c)
      .lower(7, 6, allow_broadcast);
}

}  // namespace tenon::ops
