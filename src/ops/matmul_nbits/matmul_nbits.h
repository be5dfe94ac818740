// Weights of few bits in blocks, as com.microsoft's operators have them.
#pragma once

#include "ops/decomposition.h"
#include "ops/operator.h"

namespace tenon::ops {

// What a MatMulNBits says of its weights.
struct NbitsAttributes {
  explicit NbitsAttributes(const ir::Node& node);
  int64_t n, k, bits, block;
  int64_t blocks() const { return (k + block - 1) / block; }
  // Bytes of a column's zero points, each of `bits`.
  int64_t zero_bytes() const { return (blocks() * bits + 7) / 8; }
};

// Whether the kernel has blocks of this size.
bool is_nbits_block(int64_t block);

void define_gather_block_quantized(OperatorList& list);

// The codes in the bytes of x, the lowest bits first, as bytes along the last axis, which becomes as much longer.
Term unpacked(Decomposition& d, Term x, int64_t bits);

}  // namespace tenon::ops
