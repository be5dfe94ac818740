#include "ops/matmul_nbits/matmul_nbits.h"

#include "ops/inference.h"

namespace tenon::ops {
namespace {

using enum ElementType;
using ir::AttributeKind;

constexpr TypeSet floats{float32, float16, bfloat16};

void check_elements(const Inference& i, size_t input, int64_t wanted, const char* what) {
  if (!i.has_shape(input)) return;
  const Dim count = element_count(i.shape(input));
  if (count.is_known() && !count.is(wanted))
    i.fail("{} must have {} elements; it has {}", what, wanted, count.to_string());
}

void infer_matmul(Inference& i) {
  const NbitsAttributes w(i.node());
  if (w.bits != 2 && w.bits != 4 && w.bits != 8)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("bits is {}; it may be 2, 4 or 8", w.bits));
  if (w.block < 16 || w.block % 16 != 0)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("block_size is {}; it must be a multiple of 16", w.block));
  if (w.n < 1 || w.k < 1)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("N is {} and K is {}; both must be positive", w.n, w.k));
  check_elements(i, 1, w.n * w.blocks() * (w.block * w.bits / 8), "B");
  check_elements(i, 2, w.n * w.blocks(), "scales");
  if (i.has_input(3)) check_elements(i, 3, w.n * (i.element(3) == uint8 ? w.zero_bytes() : w.blocks()), "zero_points");
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 1);
  SymbolicShape shape = i.shape(0);
  i.equal(shape.back(), w.k, "the last axis of A and K");
  shape.back() = w.n;
  i.output(0, i.element(0), std::move(shape));
}

// The zero points as floats [N, blocks], or nothing where they are left out.
Term zero_points(Decomposition& d, const NbitsAttributes& w, ElementType type) {
  if (!d.has_input(3)) return {};
  if (d.element(3) != uint8) return reshape(cast(d.input(3), type), d.ints({w.n, w.blocks()}));
  const Term codes = unpacked(d, reshape(d.input(3), d.ints({w.n, w.zero_bytes()})), w.bits);
  return cast(slice(codes, d.ints({0}), d.ints({w.blocks()}), 1), type);
}

// The weights as floats [N, K].
Term weights(Decomposition& d, const NbitsAttributes& w) {
  const Term bytes = reshape(d.input(1), d.ints({w.n, w.blocks(), w.block * w.bits / 8}));
  Term scales = reshape(d.wide_input(2), d.ints({w.n, w.blocks()}));
  Term codes = cast(unpacked(d, bytes, w.bits), scales.type);
  Term zeros = zero_points(d, w, scales.type);
  const auto first = [&](Term x) { return slice(x, d.ints({0}), d.ints({w.k}), 1); };
  const Term flat = d.ints({w.n, w.blocks() * w.block});
  if (d.has_input(4)) {
    codes = first(reshape(codes, flat));
    scales = gather(scales, d.input(4), 1);
    if (zeros) zeros = gather(zeros, d.input(4), 1);
  } else {
    scales = unsqueeze(scales, {2});
    if (zeros) zeros = unsqueeze(zeros, {2});
  }
  const Term centered = zeros ? codes - zeros : codes - static_cast<double>(int64_t{1} << (w.bits - 1));
  const Term result = centered * scales;
  return d.has_input(4) ? result : first(reshape(result, flat));
}

void decompose_matmul(Decomposition& d) {
  const NbitsAttributes w(d.node());
  Term y = d.add("MatMul", {d.wide_input(0), transpose(weights(d, w), {1, 0})});
  if (d.has_input(5)) y = y + d.wide_input(5);
  d.output(0, y);
}

}  // namespace

NbitsAttributes::NbitsAttributes(const ir::Node& node)
    : n(node.int_attribute("N", 0)),
      k(node.int_attribute("K", 0)),
      bits(node.int_attribute("bits", 4)),
      block(node.int_attribute("block_size", 0)) {}

bool is_nbits_block(int64_t block) { return block % (block > 128 ? 128 : 16) == 0; }

Term unpacked(Decomposition& d, Term x, int64_t bits) {
  if (bits == 8) return x;
  std::vector<Term> parts;
  for (int64_t bit = 0; bit < 8; bit += bits) {
    const Term shifted =
        bit == 0 ? x : d.add("BitShift", {x, x.number(static_cast<double>(bit))}, {{"direction", "RIGHT"}});
    parts.push_back(unsqueeze(d.add("BitwiseAnd", {shifted, x.number(static_cast<double>((1 << bits) - 1))}), {-1}));
  }
  const Term joined = concat(parts, -1);
  return reshape(joined, concat({outer_shape_of(x), d.ints({-1})}));
}

void define_matmul_nbits(OperatorList& list) {
  list.add("MatMulNBits", {1}, microsoft)
      .input("A", "T1")
      .input("B", TypeSet{uint8})
      .input("scales", "T1")
      .optional_input("zero_points", "T3")
      .optional_input("g_idx", TypeSet{int32})
      .optional_input("bias", "T1")
      .output("Y", "T1")
      .types("T1", floats)
      .types("T3", floats | TypeSet{uint8})
      .required_attribute("K", AttributeKind::int_)
      .required_attribute("N", AttributeKind::int_)
      .required_attribute("block_size", AttributeKind::int_)
      .attribute("bits", AttributeKind::int_)
      .attribute("accuracy_level", AttributeKind::int_)
      .attribute("weight_prepacked", AttributeKind::int_)
      .infer(infer_matmul)
      .decompose(decompose_matmul)
      .costs([](const ir::Node& node, auto) { return Dim(node.int_attribute("K", 0)); });
  define_gather_block_quantized(list);
}

}  // namespace tenon::ops
