#include "kernels/gemm/gemm.h"

#include <algorithm>
#include <optional>

#include "kernels/gemm/driver.h"
#include "kernels/gemm/gemv.h"
#include "kernels/gemm/pack.h"

namespace tenon::kernels {
namespace {

// Up to this many rows of a packed left side, packing the right side costs more than reading it where it is.
constexpr int64_t most_rows_unpacked = 16;

// Whether the left side is read where it is. Packing it costs as much as multiplying it with a few columns. Rows that
// are far apart, or a multiple of a page, are in each other's way in the first cache.
bool reads_left_in_place(const GemmKernels& kernels, GemmMatrix a, int64_t m, int64_t n) {
  constexpr int64_t most_floats_apart = 1024;
  // Cores with four vector pipes, of which ARM's have bf16, multiply packed rows a third faster.
  const int64_t most_columns = cpu_features().bf16 ? 16 : 256;
  if (a.transposed) return false;
  if (m == 1 || !kernels.rows_in_place) return m == 1;
  if (kernels.reads_many_columns_in_place) return a.ld % most_floats_apart != 0;
  return n <= most_columns && a.ld <= most_floats_apart;
}

// Whether neither side is packed: both are read from the first cache then, and packing the left one would cost as much
// as multiplying it with a few columns. For cores with four vector pipes; others read rows of the left side in place.
bool multiplies_unpacked(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, GemmMatrix a, GemmMatrix b) {
  constexpr int64_t least_columns = 16, most_columns = 256, least_rows = 4 * unpacked_rows;
  if (!kernels.unpacked[1] || !cpu_features().bf16 || a.transposed || b.transposed) return false;
  return m >= least_rows && n >= least_columns && n <= most_columns && n % kernels.vector_width == 0 &&
         4 * k * n <= cpu_features().l1d_bytes * 4 / 5;
}

// A product of which neither side is packed.
class UnpackedProduct {
 public:
  UnpackedProduct(const GemmKernels& kernels, int64_t n, int64_t k, GemmMatrix a, GemmMatrix b, float* c, int64_t ldc,
                  const GemmEpilogue& epilogue)
      : n_(n),
        k_(k),
        a_(a),
        b_(b),
        c_(c),
        epilogue_(epilogue),
        tile_(tile_of(epilogue, ldc, /*last_k=*/true)),
        columns_(int64_t{most_unpacked_vectors} * kernels.vector_width),
        whole_(kernels.unpacked[most_unpacked_vectors]),
        last_(kernels.unpacked[n % columns_ / kernels.vector_width]) {}

  // unpacked_rows rows from this one on.
  void multiply(int64_t row) const {
    const GemmEpilogue& e = epilogue_;
    GemmTile tile = tile_;
    tile.c = c_ + row * tile.ldc;
    tile.addend = e.addend ? e.addend + row * e.addend_row_stride : nullptr;
    tile.residual = e.residual ? e.residual + row * tile.ldc : nullptr;
    const GemmPanel left{a_.data + row * a_.ld, a_.ld};
    GemmPanel right{b_.data, b_.ld};
    tile.columns = static_cast<int>(columns_);
    int64_t column = 0;
    for (; column + columns_ <= n_; column += columns_) {
      whole_(k_, left, right, tile);
      tile.c += columns_;
      if (tile.addend) tile.addend += columns_ * e.addend_column_stride;
      if (tile.residual) tile.residual += columns_;
      right.data += columns_;
    }
    tile.columns = static_cast<int>(n_ - column);
    if (column < n_) last_(k_, left, right, tile);
    for (float* y = c_ + row * tile.ldc; e.activation && y < c_ + (row + unpacked_rows) * tile.ldc; y += tile.ldc)
      e.activation(y, y, n_);
  }

 private:
  int64_t n_, k_;
  GemmMatrix a_, b_;
  float* c_;
  const GemmEpilogue& epilogue_;
  GemmTile tile_;
  int64_t columns_;  // of a whole tile
  GemmRowsKernel whole_, last_;
};

void run(ThreadPool* pool, const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, GemmMatrix a, GemmMatrix b,
         float* c, int64_t ldc, const GemmEpilogue& epilogue, ReadSoon* soon = nullptr) {
  if (m <= 0 || n <= 0) return;
  if (multiplies_unpacked(kernels, m, n, k, a, b)) {
    constexpr int64_t tiles_per_task = 4;
    const UnpackedProduct product(kernels, n, k, a, b, c, ldc, epilogue);
    const int64_t tiles = m / unpacked_rows, done = tiles * unpacked_rows;
    const auto multiply = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) product.multiply(i * unpacked_rows);
    };
    pool ? pool->parallel_for(tiles, tiles_per_task, multiply) : multiply(0, tiles);
    GemmEpilogue rest = epilogue;
    if (rest.addend) rest.addend += done * rest.addend_row_stride;
    if (rest.residual) rest.residual += done * ldc;
    return run(nullptr, kernels, m - done, n, k, {a.data + done * a.ld, a.ld}, b, c + done * ldc, ldc, rest);
  }
  if (m <= most_gemv_rows) {
    const int64_t row_stride = a.transposed ? 1 : a.ld, column_stride = a.transposed ? a.ld : 1;
    return gemv(pool, kernels, m, n, k, {a.data, row_stride, column_stride}, b, {c, ldc, 1}, epilogue);
  }
  if (n == 1) {
    GemmEpilogue swapped = epilogue;
    std::swap(swapped.addend_row_stride, swapped.addend_column_stride);
    const int64_t stride = b.transposed ? 1 : b.ld;
    return gemv(pool, kernels, 1, m, k, {b.data, 0, stride}, {a.data, a.ld, !a.transposed}, {c, 1, ldc}, swapped);
  }
  const MatrixPanels left(kernels, GemmSide::left, a.data, a.ld, a.transposed, m,
                          reads_left_in_place(kernels, a, m, n));
  const MatrixPanels right(kernels, GemmSide::right, b.data, b.ld, !b.transposed, n, false);
  gemm_blocked(pool, kernels, m, n, k, left, right, c, ldc, epilogue, /*backwards=*/false, soon);
}

double flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// A single row or column reads far more than it computes, so it pays to share it earlier.
ThreadPool* pool_for(ThreadPool& pool, int64_t m, int64_t n, int64_t k) {
  return pool_for_flops(pool, flops(m, n, k) * (m == 1 || n == 1 ? 8 : 1));
}

}  // namespace

const GemmKernels& gemm_kernels_of(Isa isa) {
#if defined(__aarch64__)
  if (isa == Isa::neon) return gemm_kernels_neon;
#elif defined(__x86_64__)
  if (isa == Isa::avx512) return gemm_kernels_avx512;
  if (isa == Isa::avx2) return gemm_kernels_avx2;
#endif
  return isa == Isa::portable ? gemm_kernels_portable : gemm_kernels();
}

Isa gemm_isa() { return gemm_kernels().isa; }

PackedMatrix::PackedMatrix(ThreadPool& pool, GemmSide side, int64_t rows, int64_t columns, GemmMatrix matrix,
                           PackedStorage& storage)
    : side_(side),
      isa_(gemm_kernels().isa),
      lanes_(side == GemmSide::left ? rows : columns),
      k_(side == GemmSide::left ? columns : rows) {
  const GemmKernels& kernels = gemm_kernels_of(isa_);
  const bool left = side == GemmSide::left;
  width_ = left ? kernels.tile_rows : kernels.tile_columns;
  const int64_t panels = (lanes_ + width_ - 1) / width_;
  buffer_ = storage.get(static_cast<size_t>(panels * width_ * k_) * sizeof(float), [&](void* memory) {
    auto* to = static_cast<float*>(memory);
    const MatrixPanels source(kernels, side, matrix.data, matrix.ld, left == matrix.transposed, lanes_, false);
    const int64_t k_block = gemm_k_block(kernels, k_);
    for (int64_t k_begin = 0; k_begin < k_; k_begin += k_block) {
      const int64_t k = std::min(k_block, k_ - k_begin);
      pool.parallel_for(panels, 8, [&](int64_t first, int64_t last) {
        source.pack(k_begin, k, first, last, to + (k_begin * panels + first * k) * width_);
      });
    }
  });
}

void gemm(ThreadPool& pool, int64_t m, int64_t n, int64_t k, GemmMatrix a, GemmMatrix b, float* c, int64_t ldc,
          const GemmEpilogue& epilogue) {
  run(pool_for(pool, m, n, k), gemm_kernels(), m, n, k, a, b, c, ldc, epilogue);
}

void gemm(ThreadPool& pool, int64_t m, GemmMatrix a, const PackedMatrix& b, float* c, int64_t ldc,
          const GemmEpilogue& epilogue, bool backwards) {
  const GemmKernels& kernels = gemm_kernels_of(b.isa());
  const MatrixPanels left(kernels, GemmSide::left, a.data, a.ld, a.transposed, m,
                          reads_left_in_place(kernels, a, m, b.columns()));
  gemm_blocked(pool_for(pool, m, b.columns(), b.rows()), kernels, m, b.columns(), b.rows(), left, PackedPanels(b), c,
               ldc, epilogue, backwards);
}

int64_t gemm_panel_columns() { return gemm_kernels().tile_columns; }

void gemm_columns(int64_t m, GemmMatrix a, const PackedMatrix& b, int64_t first, int64_t last, float* c, int64_t ldc,
                  const GemmEpilogue& epilogue, bool backwards) {
  const GemmKernels& kernels = gemm_kernels_of(b.isa());
  const MatrixPanels left(kernels, GemmSide::left, a.data, a.ld, a.transposed, m,
                          reads_left_in_place(kernels, a, m, last - first));
  gemm_blocked(nullptr, kernels, m, last - first, b.rows(), left, PackedPanels(b, first / kernels.tile_columns), c, ldc,
               epilogue, backwards);
}

void gemm(ThreadPool& pool, int64_t n, const PackedMatrix& a, GemmMatrix b, float* c, int64_t ldc,
          const GemmEpilogue& epilogue) {
  const GemmKernels& kernels = gemm_kernels_of(a.isa());
  const MatrixPanels right(kernels, GemmSide::right, b.data, b.ld, !b.transposed, n,
                           !b.transposed && a.rows() <= most_rows_unpacked);
  gemm_blocked(pool_for(pool, a.rows(), n, a.columns()), kernels, a.rows(), n, a.columns(), PackedPanels(a), right, c,
               ldc, epilogue);
}

void gemm_batch(ThreadPool& pool, int64_t count, int64_t m, int64_t n, int64_t k, GemmMatrix a, GemmMatrix b,
                int64_t ldc, const GemmEpilogue& epilogue, FunctionRef<GemmBatchItem(int64_t)> item) {
  const GemmKernels& kernels = gemm_kernels();
  // The operands of two products are to fit into the second cache together with what is packed of them.
  const bool fetches_next = (m * k + k * n + m * n) * 4 <= cpu_features().l2_bytes / 4 && ldc == n &&
                            a.ld == (a.transposed ? m : k) && b.ld == (b.transposed ? k : n);
  const auto multiply = [&](ThreadPool* shared, int64_t i, bool has_next) {
    const GemmBatchItem pointers = item(i);
    GemmEpilogue own = epilogue;
    own.addend = pointers.addend;
    std::optional<ReadSoon> soon;
    if (has_next && fetches_next) {
      const GemmBatchItem next = item(i + 1);
      soon.emplace();
      if (next.b != pointers.b) soon->add(next.b, k * n);
      if (next.a != pointers.a) soon->add(next.a, m * k);
      soon->add(next.c, m * n);
    }
    run(shared, kernels, m, n, k, {pointers.a, a.ld, a.transposed}, {pointers.b, b.ld, b.transposed}, pointers.c, ldc,
        own, soon ? &*soon : nullptr);
  };
  ThreadPool* inside = pool_for(pool, m, n, k);
  if (inside && count < pool.size()) {
    for (int64_t i = 0; i < count; ++i) multiply(inside, i, false);
    return;
  }
  const auto grain = static_cast<int64_t>(1e6 / (flops(m, n, k) + 1e3)) + 1;
  pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply(nullptr, i, i + 1 < end);
  });
}

}  // namespace tenon::kernels
