#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

int64_t check(const Inference& i) {
  i.require_rank(0, 4);
  int64_t block = i.node().int_attribute("blocksize", 0);
  if (block < 1 || block > 65536)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("blocksize is {}; it must be 1 to 65536", block));
  std::string mode = i.node().string_attribute("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("mode '{}' is not one of DCR, CRD", mode));
  return block;
}

Dim divide(const Inference& i, const Dim& size, int64_t by, std::string_view what) {
  if (size.is_known() && size.value() % by != 0) i.fail("the {} {} is no multiple of {}", what, size.value(), by);
  return exact_div(size, Dim(by));
}

void infer_depth_to_space(Inference& i) {
  int64_t block = check(i);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  const SymbolicShape& s = i.shape(0);
  i.output(0, i.element(0),
           SymbolicShape{s[0], divide(i, s[1], block * block, "depth"), s[2] * Dim(block), s[3] * Dim(block)});
}

void infer_space_to_depth(Inference& i) {
  int64_t block = check(i);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  const SymbolicShape& s = i.shape(0);
  i.output(0, i.element(0),
           SymbolicShape{s[0], s[1] * Dim(block * block), divide(i, s[2], block, "height"),
                         divide(i, s[3], block, "width")});
}

// The block is two axes of its own while axes change places. DCR has it before the depth, CRD after it.
void decompose_depth_to_space(Decomposition& d) {
  Term x = d.input(0);
  Term n = size_of(x, 0), c = size_of(x, 1), h = size_of(x, 2), w = size_of(x, 3);
  Term block = d.ints({d.node().int_attribute("blocksize", 1)}), depth = c / (block * block);
  bool block_first = d.node().string_attribute("mode", "DCR") == "DCR";
  Term split = block_first ? reshape(x, concat({n, block, block, depth, h, w}))
                           : reshape(x, concat({n, depth, block, block, h, w}));
  std::vector<int64_t> order{0, 1, 4, 2, 5, 3};
  if (block_first) order = {0, 3, 4, 1, 5, 2};
  d.output(0, reshape(transpose(split, order), concat({n, depth, h * block, w * block})));
}

void decompose_space_to_depth(Decomposition& d) {
  Term x = d.input(0);
  Term block = d.ints({d.node().int_attribute("blocksize", 1)});
  Term n = size_of(x, 0), c = size_of(x, 1), h = size_of(x, 2) / block, w = size_of(x, 3) / block;
  std::vector<int64_t> order{0, 1, 3, 5, 2, 4};
  if (d.node().string_attribute("mode", "DCR") == "DCR") order = {0, 3, 5, 1, 2, 4};
  Term split = reshape(x, concat({n, c, h, block, w, block}));
  d.output(0, reshape(transpose(split, order), concat({n, c * block * block, h, w})));
}

}  // namespace

void define_depth_to_space(OperatorList& list) {
  list.add("DepthToSpace", {1, 11, 13, 28})
      .input("input", "T")
      .output("output", "T")
      .types("T", types::movable)
      .required_attribute("blocksize", AttributeKind::int_)
      .attribute("mode", AttributeKind::string)
      .infer(infer_depth_to_space)
      .decompose(decompose_depth_to_space)
      .attribute_since(11, "mode", "DCR");
  list.add("SpaceToDepth", {1, 13, 28})
      .input("input", "T")
      .output("output", "T")
      .types("T", types::movable)
      .required_attribute("blocksize", AttributeKind::int_)
      .attribute("mode", AttributeKind::string)
      .infer(infer_space_to_depth)
      .decompose(decompose_space_to_depth);
}

}  // namespace tenon::ops
