// Constant weights of few bits, or quantized in blocks, are multiplied as they are, in place of a copy of them in
// floats.
#include <algorithm>

#include "base/rounding.h"
#include "ops/matmul_nbits/matmul_nbits.h"
#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

using enum ElementType;
constexpr ops::TypeSet signed_codes{int8, int4, int2}, few_bits{int4, uint4, int2, uint2};

uint8_t byte_or_packed(const Tensor& tensor, int bits, int64_t at) {
  return bits == 8 ? static_cast<const uint8_t*>(tensor.raw())[at] : load_packed(tensor.raw(), bits, at);
}
void put(uint8_t* to, int bits, int64_t at, uint8_t code) {
  if (bits == 8)
    to[at] = code;
  else
    store_packed(to, bits, at, code);
}

// A constant matrix of codes with its scales and zero points, which are of blocks along one axis.
struct Weights {
  const Tensor *codes, *scales, *zeros;  // no zero points: null
  int bits;
  int64_t axis, block;
  // Flipping the highest bit of a signed code makes it an unsigned one.
  uint8_t flip() const { return signed_codes.contains(codes->type()) ? static_cast<uint8_t>(1 << (bits - 1)) : 0; }
  // As codes without a sign.
  uint8_t code(int64_t at) const { return byte_or_packed(*codes, bits, at) ^ flip(); }
  uint8_t zero(int64_t at) const { return (zeros ? byte_or_packed(*zeros, bits, at) : uint8_t{0}) ^ flip(); }
  bool zeros_are_in_the_middle() const {
    const int middle = 1 << (bits - 1);
    for (int64_t i = 0; i < scales->elements(); ++i) {
      if (zero(i) != middle) return false;
    }
    return true;
  }
};

// What a DequantizeLinear of constants reads, if its scales are by block of `axis`, or by index of the other one of
// two, or one for all. A block is the whole axis then, filled up to what the kernel has.
std::optional<Weights> weights_of(const ir::Node& dequantize, int64_t axis) {
  const Tensor *codes = Editor::constant(dequantize.input(0)), *scales = Editor::constant(dequantize.input(1)),
               *zeros = Editor::constant(dequantize.input(2));
  if (!codes || !scales || codes->rank() != 2 || codes->elements() == 0 || (dequantize.input(2) && !zeros))
    return std::nullopt;
  if (dequantize.output(0)->type.element != scales->type() || dequantize.int_attribute("output_dtype", 0) != 0)
    return std::nullopt;
  const bool is_small = few_bits.contains(codes->type());
  const int64_t block = dequantize.int_attribute("block_size", 0);
  if (!is_small && (block == 0 || (codes->type() != int8 && codes->type() != uint8))) return std::nullopt;
  int64_t of = dequantize.int_attribute("axis", 1);
  if (of < 0) of += codes->rank();
  const int64_t size = codes->dim(static_cast<int>(axis));
  const Weights result{
      codes, scales, zeros, bits_of(codes->type()), axis, block > 0 ? block : round_up(size, size > 128 ? 128 : 16)};
  if (block > 0 ? of != axis : scales->elements() != 1 && of == axis) return std::nullopt;
  return result;
}

// The codes [columns, blocks, bytes of a block], scales and zero points of a MatMulNBits.
struct Packed {
  Tensor codes, scales;
  std::optional<Tensor> zeros;
};

Packed packed(const Weights& w) {
  const int64_t steps = w.codes->dim(static_cast<int>(w.axis)), columns = w.codes->dim(static_cast<int>(1 - w.axis));
  const int64_t blocks = divide_up(steps, w.block);
  const auto at = [&](int64_t column, int64_t step) {
    return w.axis == 0 ? step * columns + column : column * steps + step;
  };
  // Of the scales: one for all, by column, or by block and column.
  const auto parameter = [&](int64_t column, int64_t block) {
    if (w.scales->elements() == 1) return int64_t{0};
    return w.axis == 0 ? block * columns + column : column * blocks + block;
  };
  Packed result{Tensor(uint8, Shape{columns, blocks, w.block * w.bits / 8}),
                Tensor(w.scales->type(), Shape{columns, blocks}),
                {}};
  auto* bytes = result.codes.mutable_data<uint8_t>().data();
  std::fill_n(bytes, result.codes.elements(), uint8_t{0});
  const int64_t item = bits_of(w.scales->type()) / 8, zero_bytes = divide_up(blocks * w.bits, 8);
  if (!w.zeros_are_in_the_middle()) {
    result.zeros = Tensor(uint8, Shape{columns, zero_bytes});
    std::ranges::fill(result.zeros->mutable_data<uint8_t>(), uint8_t{0});
  }
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t step = 0; step < steps; ++step)
      put(bytes + column * blocks * w.block * w.bits / 8, w.bits, step, w.code(at(column, step)));
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t from = parameter(column, block);
      std::copy_n(static_cast<const std::byte*>(w.scales->raw()) + from * item, item,
                  static_cast<std::byte*>(result.scales.mutable_raw()) + (column * blocks + block) * item);
      if (result.zeros)
        put(result.zeros->mutable_data<uint8_t>().data() + column * zero_bytes, w.bits, block, w.zero(from));
    }
  }
  return result;
}

// MatMul, and Gemm that only adds a bias.
void multiply_codes(Editor& editor, ir::Node& node) {
  const bool is_gemm = node.op_type == "Gemm";
  bool transposed = is_gemm && node.int_attribute("transB", 0) != 0;
  if (is_gemm && (node.float_attribute("alpha", 1) != 1 || node.int_attribute("transA", 0) != 0 ||
                  (node.input(2) && node.float_attribute("beta", 1) != 1)))
    return;
  const ir::Value* right = node.input(1);
  if (const ir::Node* transpose = producer(right, "Transpose"); transpose && editor.rank(right) == 2) {
    transposed = !transposed;
    right = transpose->input(0);
  }
  const ir::Node* dequantize = producer(right, "DequantizeLinear");
  const std::optional<Weights> w = dequantize ? weights_of(*dequantize, transposed ? 1 : 0) : std::nullopt;
  if (!w || editor.rank(node.input(0)) < 1 || w->block < 16 || !ops::is_nbits_block(w->block)) return;
  const int64_t n = w->codes->dim(transposed ? 0 : 1), k = w->codes->dim(transposed ? 1 : 0);
  ir::Value* bias = is_gemm ? node.input(2) : nullptr;
  if (bias && !(editor.rank(bias) == 1 && (*editor.shape(bias))[0].is(n))) return;
  editor.rewrite(node, [&](Patch& patch) {
    Packed b = packed(*w);
    patch.replace(
        node,
        *patch.add("MatMulNBits",
                   {node.input(0), patch.constant(std::move(b.codes)), patch.constant(std::move(b.scales)),
                    b.zeros ? patch.constant(std::move(*b.zeros)) : nullptr, nullptr, bias},
                   {{"N", n}, {"K", k}, {"bits", w->bits}, {"block_size", w->block}}, std::string(ops::microsoft)));
  });
}

// Rows of a table: what is picked is dequantized.
void gather_codes(Editor& editor, ir::Node& node) {
  const ir::Node* dequantize = producer(node.input(0), "DequantizeLinear");
  if (!dequantize || node.int_attribute("axis", 0) != 0) return;
  const std::optional<Weights> w = weights_of(*dequantize, 1);
  if (!w || w->codes->dim(1) % w->block != 0 || w->block < 16) return;
  editor.rewrite(node, [&](Patch& patch) {
    Packed table = packed(*w);
    const Tensor codes = table.codes.reshaped(Shape{w->codes->dim(0), w->codes->dim(1) * w->bits / 8});
    patch.replace(node, *patch.add("GatherBlockQuantized",
                                   {patch.constant(codes), node.input(1), patch.constant(std::move(table.scales)),
                                    table.zeros ? patch.constant(std::move(*table.zeros)) : nullptr},
                                   {{"bits", w->bits}, {"block_size", w->block}}, std::string(ops::microsoft)));
  });
}

}  // namespace

void use_packed_weights(Editor& editor, ir::Node& node) {
  if (!node.domain.empty()) return;
  if (node.op_type == "MatMul" || node.op_type == "Gemm") multiply_codes(editor, node);
  if (node.op_type == "Gather") gather_codes(editor, node);
}

}  // namespace tenon::passes
