#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_grid_sample(Inference& i) {
  i.require_rank_at_least(0, 3);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  // A sample is made of 4 neighbours per axis when it is cubic.
  constexpr int most_axes = 6;
  if (i.rank(0) - 2 > most_axes) {
    i.fail_with(ErrorCode::unsupported, fmt::format("sampling over {} spatial axes is not supported; at most {} are",
                                                    i.rank(0) - 2, most_axes));
  }
  const SymbolicShape& x = i.shape(0);
  SymbolicShape result{x[0], x[1]};
  i.require_rank(1, i.rank(0));
  if (i.has_shape(1)) {
    result[0] = i.equal(x[0], i.shape(1)[0], "the batches of X and grid");
    i.equal(i.shape(1).back(), i.rank(0) - 2, "the last axis of grid and the spatial axes of X");
  }
  for (size_t axis = 1; axis + 1 < x.size(); ++axis)
    result.push_back(i.has_shape(1) ? i.shape(1)[axis] : Dim::unknown());
  i.output(0, i.element(0), std::move(result));
}

void infer_affine_grid(Inference& i) {
  i.require_rank(0, 3);
  i.require_rank(1, 1);
  auto size = i.values(1);
  if (!size) return i.output(0, i.element(0), std::nullopt);
  if (size->size() != 4 && size->size() != 5) i.fail("size has {} elements; it must have 4 or 5", size->size());
  auto spatial = static_cast<int64_t>(size->size()) - 2;
  SymbolicShape result{(*size)[0]};
  if (i.has_shape(0)) {
    result[0] = i.equal(i.shape(0)[0], (*size)[0], "the batches of theta and size");
    i.equal(i.shape(0)[1], spatial, "the rows of theta and the spatial axes");
    i.equal(i.shape(0)[2], spatial + 1, "the columns of theta and the spatial axes plus one");
  }
  for (size_t axis = 2; axis < size->size(); ++axis) {
    if ((*size)[axis].is_known() && (*size)[axis].value() < 0)
      i.fail("size has {} for axis {}", (*size)[axis].value(), axis);
    result.push_back((*size)[axis]);
  }
  result.push_back(Dim(spatial));
  i.output(0, i.element(0), std::move(result));
}

// Version 20 named the modes after any number of axes.
void rename_modes(ir::Node& node) {
  std::string mode = node.string_attribute("mode", "bilinear");
  if (mode == "bilinear") node.set_attribute({"mode", std::string("linear")});
  if (mode == "bicubic") node.set_attribute({"mode", std::string("cubic")});
}

std::string rename_modes_back(ir::Node& node) {
  if (node.input(0) && node.input(0)->type.shape && node.input(0)->type.shape->size() != 4)
    return "before version 20 it took images only";
  const std::string mode = node.string_attribute("mode", "linear");
  node.set_attribute({"mode", mode == "linear" ? std::string("bilinear") : mode == "cubic" ? "bicubic" : mode});
  return {};
}

// Where the n elements of an axis lie between -1 and 1: their middles, or from end to end.
Term coordinates(Decomposition& d, Term n, ElementType type, bool from_end_to_end) {
  Term i = cast(d.indices(n), type), size = cast(n, type);
  return from_end_to_end ? 2 * i / max(size - 1, 1) - 1 : (2 * i + 1) / size - 1;
}

// Every point of the grid as (x, y, …, 1), times the matrix.
void decompose_affine_grid(Decomposition& d) {
  int64_t axes = d.known_size(1, 0) - 2;
  if (axes < 0) axes = d.known_size(0, 1);
  if (axes != 2 && axes != 3) d.give_up("the number of spatial axes is not known");
  bool from_end_to_end = d.node().int_attribute("align_corners", 0) != 0;
  Term theta = d.wide_input(0), one = d.ints({1});
  Term plane = slice(d.input(1), d.ints({2}), d.ints({axes + 2}), 0), points = concat({plane, one});
  std::vector<Term> parts;
  for (int64_t axis = axes; axis-- > 0;) {
    Term n = slice(plane, d.ints({axis}), d.ints({axis + 1}), 0);
    std::vector<Term> shape(static_cast<size_t>(axes + 1), one);
    shape[static_cast<size_t>(axis)] = n;
    parts.push_back(expand(reshape(coordinates(d, n, theta.type, from_end_to_end), concat(shape)), points));
  }
  parts.push_back(expand(theta.number(1), points));
  std::vector<int64_t> new_axes{1};
  if (axes == 3) new_axes.push_back(2);
  Term matrix = unsqueeze(transpose(theta, {0, 2, 1}), new_axes);
  d.output(0, d.add("MatMul", {concat(parts, -1), matrix}));
}

}  // namespace

void define_grid_sample(OperatorList& list) {
  list.add("GridSample", {16, 20, 22})
      .input("X", "T1")
      .input("grid", "T2")
      .output("Y", "T1")
      .types("T1", types::movable)
      .types("T2", types::floats)
      .attribute("align_corners", AttributeKind::int_)
      .attribute("mode", AttributeKind::string)
      .attribute("padding_mode", AttributeKind::string)
      .infer(infer_grid_sample)
      .lift(16, 20, rename_modes)
      .lower(20, 16, rename_modes_back);
  list.add("AffineGrid", {20})
      .input("theta", "T1")
      .input("size", TypeSet{ElementType::int64})
      .output("grid", "T1")
      .types("T1", types::floats)
      .attribute("align_corners", AttributeKind::int_)
      .infer(infer_affine_grid)
      .decompose(decompose_affine_grid);
}

}  // namespace tenon::ops
