#include <algorithm>

#include "ops/inference.h"
#include "ops/matmul_nbits/matmul_nbits.h"

namespace tenon::ops {
namespace {

using enum ElementType;
using ir::AttributeKind;

constexpr TypeSet tables{int4, uint4, uint8, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz, float4e2m1};

// Codes that share a byte of uint8.
int64_t codes_of_byte(const ir::Node& node, ElementType type) {
  return type == uint8 ? 8 / std::clamp<int64_t>(node.int_attribute("bits", 4), 1, 8) : 1;
}

void infer_gather(Inference& i) {
  const int64_t bits = i.node().int_attribute("bits", 4);
  if (i.element(0) == uint8 && bits != 2 && bits != 4 && bits != 8)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("bits is {}; it may be 2, 4 or 8", bits));
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(2), std::nullopt);
  i.require_rank_at_least(0, 1);
  SymbolicShape table = i.shape(0);
  const auto axis = i.axis(i.node().int_attribute("gather_axis", 0), i.rank(0));
  const int last = i.rank(0) - 1, quantized = i.axis(i.node().int_attribute("quantize_axis", 1), i.rank(0));
  const int64_t codes = codes_of_byte(i.node(), i.element(0));
  if (codes > 1 && quantized != last)
    i.fail_with(ErrorCode::invalid_attribute, "codes that share bytes are quantized along the last axis");
  table.back() = table.back() * codes;
  SymbolicShape shape(table.begin(), table.begin() + axis);
  for (const Dim& size : i.shape(1)) shape.push_back(size);
  for (size_t k = static_cast<size_t>(axis) + 1; k < table.size(); ++k) shape.push_back(table[k]);
  i.output(0, i.element(2), std::move(shape));
}

// What is picked is dequantized: an element of the table needs its block's scale only.
void decompose_gather(Decomposition& d) {
  const ir::Node& node = d.node();
  const int rank = d.rank(0);
  const auto from_front = [&](int64_t axis) { return axis < 0 ? axis + rank : axis; };
  const int64_t axis = from_front(node.int_attribute("gather_axis", 0)),
                bits = d.element(0) == uint8 ? node.int_attribute("bits", 4) : 8;
  int64_t along = from_front(node.int_attribute("quantize_axis", 1)), block = node.int_attribute("block_size", 128);
  if (along == axis) d.give_up("it picks elements along the axis of its blocks");
  if (block == 0) block = d.known_size(0, static_cast<int>(along));
  if (block < 1) d.give_up("the size of its blocks is not known");
  if (along > axis) along -= rank;  // from the end, however many axes the indices have
  if (d.element(0) == float4e2m1) d.give_up("its table has elements of 4-bit floats");
  // Rows of 4-bit integers share bytes.
  const auto picked = [&](Term x) {
    return gather(x.type == int4 || x.type == uint4 ? cast(x, x.type == int4 ? int8 : uint8) : x, d.input(1), axis);
  };
  const Term codes = unpacked(d, picked(d.input(0)), bits), scales = picked(d.input(2));
  Term zeros;
  if (d.has_input(3)) {
    zeros = unpacked(d, picked(d.input(3)), bits);
    zeros = slice(zeros, d.ints({0}), size_of(scales, along), along);
  } else if (d.element(0) == uint8) {
    zeros = expand(codes.number(static_cast<double>(int64_t{1} << (bits - 1))), shape_of(scales));
  }
  d.output(0, d.add("DequantizeLinear", {codes, scales, zeros}, {{"axis", along}, {"block_size", block}}, scales.type));
}

}  // namespace

void define_gather_block_quantized(OperatorList& list) {
  list.add("GatherBlockQuantized", {1}, microsoft)
      .input("data", "T1")
      .input("indices", types::index)
      .input("scales", "T2")
      .optional_input("zero_points", "T1")
      .output("output", "T2")
      .types("T1", tables)
      .types("T2", {float32, float16, bfloat16})
      .attribute("bits", AttributeKind::int_)
      .attribute("block_size", AttributeKind::int_)
      .attribute("gather_axis", AttributeKind::int_)
      .attribute("quantize_axis", AttributeKind::int_)
      .infer(infer_gather)
      .decompose(decompose_gather);
}

}  // namespace tenon::ops
