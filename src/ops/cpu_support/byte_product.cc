#include "ops/cpu_support/byte_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/fail.h"
#include "ops/quantize/codec.h"

namespace tenon::ops {
namespace {

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

kernels::ByteMatrix byte_matrix(const Tensor& x, int64_t first, int64_t columns) {
  return {static_cast<const uint8_t*>(x.raw()) + first, x.type() == ElementType::int8, columns};
}

// The zero points of one matrix with this many lines.
kernels::ByteZeroPoints of_matrix(const std::vector<int32_t>& zeros, int64_t matrix, int64_t lines) {
  const int64_t first = std::ssize(zeros) > lines ? matrix * lines : 0;
  return {zeros.data() + first, zeros.size() > 1};
}

// How many lines all matrices of a side have.
int64_t all_lines(const Tensor& side, int64_t k) { return k == 0 ? 0 : side.elements() / k; }

}  // namespace

MatrixBatch::MatrixBatch(const Shape& a, const Shape& b)
    : m(a.rank() == 1 ? 1 : a[a.rank() - 2]), n(b.rank() == 1 ? 1 : b[b.rank() - 1]), k(a[a.rank() - 1]) {
  const int a_rank = std::max(0, a.rank() - 2), b_rank = std::max(0, b.rank() - 2), rank = std::max(a_rank, b_rank);
  sizes.assign(static_cast<size_t>(rank), 1);
  a_strides = b_strides = std::vector<int64_t>(static_cast<size_t>(rank));
  auto fill = [&](const Shape& shape, int own, std::vector<int64_t>& strides) {
    int64_t stride = 1;
    for (int axis = own - 1; axis >= 0; --axis) {
      auto target = static_cast<size_t>(rank - own + axis);
      if (shape[axis] != 1) {
        sizes[target] = shape[axis];
        strides[target] = stride;
      }
      stride *= shape[axis];
    }
  };
  fill(a, a_rank, a_strides);
  fill(b, b_rank, b_strides);
  for (int64_t size : sizes) count *= size;
}

std::pair<int64_t, int64_t> MatrixBatch::at(int64_t i) const {
  int64_t a = 0, b = 0;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    a += i % sizes[axis] * a_strides[axis];
    b += i % sizes[axis] * b_strides[axis];
    i /= sizes[axis];
  }
  return {a, b};
}

LineParameters::LineParameters(const Tensor& tensor, int64_t lines, int64_t all_lines, const char* name)
    : values(static_cast<size_t>(tensor.elements())) {
  const int64_t count = tensor.elements();
  if (count == 0 || (count != 1 && count != lines && count != all_lines)) {
    fail(ErrorCode::shape_mismatch, "{} has {} elements; it may have 1, {} or {}", name, count, lines, all_lines);
  }
  load_as_float(tensor, 0, tensor.elements(), values.data());
}

LineParameters LineParameters::of_rows(const KernelRun& run, size_t input, const MatrixBatch& batch, const char* name) {
  if (!run.has_input(input)) return {};
  return {run.input(input), batch.m, all_lines(run.input(0), batch.k), name};
}

LineParameters LineParameters::of_columns(const KernelRun& run, size_t input, size_t b_input, const MatrixBatch& batch,
                                          const char* name) {
  if (!run.has_input(input)) return {};
  return {run.input(input), batch.n, all_lines(run.input(b_input), batch.k), name};
}

size_t ByteProduct::Packed::bytes() const {
  size_t total = 0;
  for (const kernels::PackedBytes& matrix : matrices) total += matrix.panels().bytes();
  return total;
}

ByteProduct::ByteProduct(const NodeInfo& info, size_t b_input, size_t b_zero_input) : b_input_(b_input) {
  const Tensor* b = info.constant(b_input);
  if (!b || !is_byte(b->type()) || b->elements() == 0) return;
  if (info.node().input(b_zero_input) && !info.constant(b_zero_input)) return;
  const int64_t n = b->rank() == 1 ? 1 : b->dim(b->rank() - 1), k = b->dim(std::max(0, b->rank() - 2));
  const std::vector<int32_t> zeros =
      info.constant(b_zero_input)
          ? LineParameters(*info.constant(b_zero_input), n, b->elements() / k, "b_zero_point").whole()
          : std::vector<int32_t>{0};
  packed_ =
      info.packed<Packed>({b_input}, fmt::format("zero points {}", fmt::join(zeros, " ")), [&](PackedStorage& storage) {
        Packed packed;
        for (int64_t i = 0; i < b->elements() / (k * n); ++i) {
          packed.matrices.emplace_back(info.threads(), kernels::GemmSide::right, n, k, byte_matrix(*b, i * k * n, n),
                                       of_matrix(zeros, i, n), kernels::int8_kernels(), storage);
        }
        return packed;
      });
}

void ByteProduct::multiply(KernelRun& run, const MatrixBatch& batch, const LineParameters& a_zero,
                           const LineParameters& b_zero, const int32_t* bias, kernels::FinishSums finish) const {
  const Tensor &a = run.input(0), &b = run.input(b_input_);
  const auto [m, n, k] = std::tuple(batch.m, batch.n, batch.k);
  const std::vector<int32_t> a_zeros = a_zero.whole(), b_zeros = b_zero.whole();
  const auto multiply_one = [&, n = n, k = k](ThreadPool* pool, int64_t rows, int64_t ia, int64_t ib,
                                              kernels::FinishSums to) {
    const auto left = byte_matrix(a, ia * batch.m * k, k);
    const auto left_zeros = of_matrix(a_zeros, ia, rows);
    if (packed_)
      kernels::gemm_int8(pool, rows, left, left_zeros, packed_->matrices[static_cast<size_t>(ib)], bias, to);
    else
      kernels::gemm_int8(pool, rows, n, k, left, left_zeros, byte_matrix(b, ib * k * n, n), of_matrix(b_zeros, ib, n),
                         bias, to);
  };
  // Many matrices with one on the right are one tall matrix.
  const bool is_tall = b.elements() == k * n && a.elements() == batch.count * m * k &&
                       (a_zeros.size() == 1 || std::ssize(a_zeros) == batch.count * m);
  if (is_tall) return multiply_one(&run.threads(), batch.count * m, 0, 0, finish);
  const bool by_matrix = batch.count >= run.threads().size();
  const auto multiply_some = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto [ia, ib] = batch.at(i);
      ThreadPool* pool = by_matrix ? nullptr : &run.threads();
      if (finish.codes()) {
        kernels::CodesOfSums moved = *finish.codes();
        moved.y += i * batch.m * moved.ldy;
        multiply_one(pool, batch.m, ia, ib, moved);
        continue;
      }
      multiply_one(pool, batch.m, ia, ib, [&](const kernels::SumsBlock& block) {
        kernels::SumsBlock moved = block;
        moved.row += i * batch.m;
        finish(moved);
      });
    }
  };
  if (by_matrix)
    run.threads().parallel_for(batch.count, 1, multiply_some);
  else
    multiply_some(0, batch.count);
}

}  // namespace tenon::ops
