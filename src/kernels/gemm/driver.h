// The blocked loops around the micro-kernels, for anything that can fill panels: matrices, packed weights, images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/tile.h"

namespace tenon::kernels {

// One side of a multiplication, cut into panels of tile_rows (left side) or tile_columns (right side) lanes. The last
// panel may have fewer: steps along k are that much shorter on the left side, and padded with zeros on the right.
class PanelSource {
 public:
  virtual ~PanelSource() = default;
  // Panels [0, ready()) can be read where they are, with `ready_panel`; `pack` fills the others.
  virtual int64_t ready() const = 0;
  // Left panels of the same k follow each other.
  virtual GemmPanel ready_panel(int64_t k_begin, int64_t k, int64_t panel) const = 0;
  // Whether there are left panels that are ready, and not packed, but rows that lie `stride` apart.
  virtual bool has_rows() const { return false; }
  // Where the rows lie of which left panels from this one on are packed; null where they do not lie in rows.
  virtual GemmPanel rows_of(int64_t k_begin, int64_t panel) const;
  // Writes panels [first, last) for k steps [k_begin, k_begin + k), k * width floats apart.
  virtual void pack(int64_t k_begin, int64_t k, int64_t first, int64_t last, float* out) const = 0;
};

// A matrix in memory.
class MatrixPanels : public PanelSource {
 public:
  // Lane l at step p is data[p * ld + l] when `lanes_contiguous`, else data[l * ld + p].
  // `read_in_place` uses full panels of the right side without packing, if its lanes are contiguous, or of the left
  // side if they are not; one lane alone is a full panel there.
  MatrixPanels(const GemmKernels& kernels, GemmSide side, const float* data, int64_t ld, bool lanes_contiguous,
               int64_t lanes, bool read_in_place);
  int64_t ready() const override { return ready_; }
  GemmPanel ready_panel(int64_t k_begin, int64_t k, int64_t panel) const override;
  GemmPanel rows_of(int64_t k_begin, int64_t panel) const override;
  bool has_rows() const override { return side_ == GemmSide::left && lanes_ > 1 && ready_ > 0; }
  void pack(int64_t k_begin, int64_t k, int64_t first, int64_t last, float* out) const override;

 private:
  const GemmKernels& kernels_;
  GemmSide side_;
  const float* data_;
  int64_t ld_;
  bool lanes_contiguous_;
  int64_t lanes_;
  int width_;
  int64_t ready_;
};

// Panels that were packed ahead, all k blocks after each other.
class PackedPanels final : public PanelSource {
 public:
  // From panel `first` on.
  explicit PackedPanels(const PackedMatrix& matrix, int64_t first = 0);
  int64_t ready() const override { return panels_ - first_; }
  GemmPanel ready_panel(int64_t k_begin, int64_t k, int64_t panel) const override;
  void pack(int64_t, int64_t, int64_t, int64_t, float*) const override {}

 private:
  const float* data_;
  int64_t first_, panels_;
  int width_;
};

// Whether values are clamped.
inline bool has_limits(const GemmEpilogue& e) {
  return e.lo > -std::numeric_limits<float>::infinity() || e.hi < std::numeric_limits<float>::infinity();
}

// What all tiles of a product have in common; limits are those of its last k block.
inline GemmTile tile_of(const GemmEpilogue& e, int64_t ldc, bool last_k) {
  GemmTile tile{};
  tile.ldc = ldc;
  tile.alpha = e.alpha;
  tile.beta = e.beta;
  tile.addend_row_stride = e.addend_row_stride;
  tile.addend_column_stride = e.addend_column_stride;
  tile.clamp = last_k && has_limits(e);
  tile.lo = e.lo;
  tile.hi = e.hi;
  return tile;
}

// The length of k blocks: the same for every product of depth k with these kernels.
int64_t gemm_k_block(const GemmKernels& kernels, int64_t k);

// What is read and written after a product: its tiles bring that near where they have nothing else to.
class ReadSoon {
 public:
  void add(const float* data, int64_t floats);
  // Over so many steps, each of which brings a line near at most.
  void spread(int64_t steps);
  // Has a tile of so many steps bring near what comes next.
  void fetch(int64_t steps, GemmTile& tile);

 private:
  static constexpr size_t most_parts = 3;
  std::span<const std::byte> parts_[most_parts];
  size_t count_ = 0, next_ = 0;
  int64_t bytes_of_step_ = 0;
};

// c[m, n] = epilogue(a * b). With `pool` null it runs in the calling thread. `backwards`: see gemm. `soon` may be null.
void gemm_blocked(ThreadPool* pool, const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const PanelSource& a,
                  const PanelSource& b, float* c, int64_t ldc, const GemmEpilogue& epilogue, bool backwards = false,
                  ReadSoon* soon = nullptr);

// The pool, or null where the work is too small to share.
ThreadPool* pool_for_flops(ThreadPool& pool, double flops);

}  // namespace tenon::kernels
