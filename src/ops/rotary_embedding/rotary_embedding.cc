#include "ops/attention/decompose.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_rotary_embedding(Inference& i) {
  i.same_as_input(0);
  i.require_rank(1, i.has_input(3) ? 2 : 3);
  i.require_rank(2, i.has_input(3) ? 2 : 3);
  i.require_rank(3, 2);
  if (!i.has_shape(0)) return;
  const SymbolicShape& x = i.shape(0);
  if (x.size() != 3 && x.size() != 4) i.fail("X must have rank 3 or 4, it has rank {}", x.size());
  const Dim &batch = x[0], &sequence = x[x.size() == 4 ? 2 : 1];
  Dim size = x.back();
  if (x.size() == 3) {
    int64_t heads = i.node().int_attribute("num_heads", 0);
    if (heads < 1)
      i.fail_with(ErrorCode::invalid_attribute, "num_heads must be given, and at least 1, for an input of rank 3");
    if (size.is_known() && size.value() % heads != 0)
      i.fail("{} elements cannot be divided among {} heads", size.value(), heads);
    size = exact_div(size, heads);
  }
  int64_t rotated = i.node().int_attribute("rotary_embedding_dim", 0);
  if (rotated < 0 || rotated % 2 != 0 || (size.is_known() && rotated > size.value())) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("rotary_embedding_dim is {}; it must be even and at most the head size", rotated));
  }
  if (rotated == 0 && size.is_known() && size.value() % 2 != 0)
    i.fail("the head size {} is odd and cannot be rotated as a whole", size.value());
  Dim half = rotated > 0 ? Dim(rotated / 2) : exact_div(size, 2);
  for (size_t cache : {1, 2}) {
    if (!i.has_shape(cache)) continue;
    i.equal(i.shape(cache).back(), half, "the last axis of the caches and half the rotated size");
    if (i.has_input(3)) continue;
    i.equal(i.shape(cache)[0], batch, "the batches of the caches and X");
    i.equal(i.shape(cache)[1], sequence, "the sequence lengths of the caches and X");
  }
  if (i.has_shape(1) && i.has_shape(2))
    i.equal(i.shape(1)[0], i.shape(2)[0], "the first axes of cos_cache and sin_cache");
  if (i.has_shape(3)) {
    i.equal(i.shape(3)[0], batch, "the batches of position_ids and X");
    i.equal(i.shape(3)[1], sequence, "the sequence lengths of position_ids and X");
  }
}

void decompose_rotary_embedding(Decomposition& d) {
  const bool interleaved = d.node().int_attribute("interleaved", 0) != 0;
  Term x = split_heads(d, 0, d.node().int_attribute("num_heads", 0));
  x = cast(x, wide(x.type));
  Term positions = d.has_input(3) ? counted_from_front(d.input(3)) : Term{};
  auto cache = [&](size_t i) {
    Term values = d.wide_input(i);
    return unsqueeze(positions ? gather(values, positions, 0) : values, {1, 3});
  };
  Term cosine = cache(1), sine = cache(2);
  Term zero = d.ints({0}), half = size_of(cosine, -1), rotated = half + half;
  Term a = interleaved ? slice(x, zero, rotated, -1, 2) : slice(x, zero, half, -1);
  Term b = interleaved ? slice(x, d.ints({1}), rotated, -1, 2) : slice(x, half, rotated, -1);
  Term real = cosine * a - sine * b, imaginary = sine * a + cosine * b;
  Term rest = slice(x, rotated, d.ints({INT64_MAX}), -1);
  Term turned = interleaved ? reshape(concat({unsqueeze(real, {-1}), unsqueeze(imaginary, {-1})}, -1),
                                      concat({outer_shape_of(x), rotated}))
                            : concat({real, imaginary}, -1);
  d.output(0, reshape(concat({turned, rest}, -1), shape_of(d.input(0))));
}

}  // namespace

void define_rotary_embedding(OperatorList& list) {
  list.add("RotaryEmbedding", {23})
      .input("X", "T")
      .input("cos_cache", "T")
      .input("sin_cache", "T")
      .optional_input("position_ids", TypeSet{ElementType::int64})
      .output("Y", "T")
      .types("T", {ElementType::float32, ElementType::float16, ElementType::bfloat16})
      .attribute("interleaved", AttributeKind::int_)
      .attribute("num_heads", AttributeKind::int_)
      .attribute("rotary_embedding_dim", AttributeKind::int_)
      .infer(infer_rotary_embedding)
      .decompose(decompose_rotary_embedding);
}

}  // namespace tenon::ops
