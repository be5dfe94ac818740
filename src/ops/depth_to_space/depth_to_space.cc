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

}  // namespace

void define_depth_to_space(OperatorList& list) {
  list.add("DepthToSpace", {1, 11, 13, 28})
      .input("input", "T")
      .output("output", "T")
      .types("T", types::movable)
      .required_attribute("blocksize", AttributeKind::int_)
      .attribute("mode", AttributeKind::string)
      .infer(infer_depth_to_space);
  list.add("SpaceToDepth", {1, 13, 28})
      .input("input", "T")
      .output("output", "T")
      .types("T", types::movable)
      .required_attribute("blocksize", AttributeKind::int_)
      .attribute("mode", AttributeKind::string)
      .infer(infer_space_to_depth);
}

}  // namespace tenon::ops
