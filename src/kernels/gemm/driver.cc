#include "kernels/gemm/driver.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/cpu_features.h"
#include "base/rounding.h"
#include "kernels/gemm/pack.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

constexpr double least_flops_to_share = 1e6;
// Floats that are packed at once, which bounds the scratch memory of a product. One thread takes of the right side what
// stays in half of the L2 cache while all rows pass by; several threads share more of it, by the size of the product.
constexpr int64_t most_left_floats = int64_t{4} << 20;
constexpr int64_t least_right_floats = 264 << 10, most_right_floats = int64_t{1} << 20;
// A left side of few rows: so many times what cached_panels says, and so many floats in all.
constexpr int64_t few_parts = 4;
constexpr int64_t most_few_floats = int64_t{1} << 20;
constexpr int64_t floats_per_pack_task = 8 << 10;
constexpr int64_t tasks_per_thread = 4;
constexpr int64_t row_to_activate = 256;  // floats at least, at once

// At once: they are still in the L2 cache, and rows of them long enough.
int64_t floats_to_activate() { return cpu_features().l2_bytes / 4 / 4; }

// Everything that stays the same while one product runs.
struct Product {
  ThreadPool* pool;
  const GemmKernels& kernels;
  int64_t m, n, k;
  const PanelSource& a;
  const PanelSource& b;
  float* c;
  int64_t ldc;
  const GemmEpilogue& epilogue;
  bool backwards;
  ReadSoon* soon;
  bool has_halves = false;  // two tiles of half_rows, in place

  int tile_rows() const { return has_halves ? half_rows : kernels.tile_rows; }

  void share(int64_t n_tasks, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) const {
    if (pool) {
      pool->parallel_for(n_tasks, grain, body);
    } else if (n_tasks > 0) {
      body(0, n_tasks);
    }
  }

  bool is_shared() const { return pool && pool->size() > 1; }
  // So many that threads end at about the same time.
  int64_t tasks() const { return is_shared() ? tasks_per_thread * pool->size() : 1; }
};

// One k block of a rectangle of tiles, with what was packed for it.
struct Block {
  int64_t k_begin, k;
  int64_t row_panel, row_panel_end;
  int64_t column_panel, column_panel_end;
  float* packed_a;  // panels from max(row_panel, a.ready()) on
  float* packed_b;
  bool packs_rows = false;  // the tiles of its first column pack full left panels, from where their rows lie

  GemmPanel panel(const PanelSource& source, const float* packed, int64_t begin, int64_t index, int width) const {
    if (index < source.ready()) return source.ready_panel(k_begin, k, index);
    return {packed + (index - std::max(begin, source.ready())) * k * width, width};
  }
};

void pack_block(const Product& p, const Block& block, bool with_a, bool with_b) {
  const int rows = p.kernels.tile_rows, columns = p.kernels.tile_columns;
  const int64_t a_first = std::max(block.row_panel, block.packs_rows ? p.m / rows : p.a.ready());
  const int64_t b_first = std::max(block.column_panel, p.b.ready());
  const int64_t a_panels = with_a ? std::max<int64_t>(0, block.row_panel_end - a_first) : 0;
  float* a_to = block.packed_a + (a_first - std::max(block.row_panel, p.a.ready())) * block.k * rows;
  const int64_t b_panels = with_b ? std::max<int64_t>(0, block.column_panel_end - b_first) : 0;
  const int64_t grain = divide_up(floats_per_pack_task, std::max<int64_t>(1, block.k * std::max(rows, columns)));
  p.share(a_panels + b_panels, grain, [&](int64_t begin, int64_t end) {
    if (begin < a_panels) {
      p.a.pack(block.k_begin, block.k, a_first + begin, a_first + std::min(end, a_panels),
               a_to + begin * block.k * rows);
    }
    if (end > a_panels) {
      const int64_t first = std::max(begin, a_panels) - a_panels;
      p.b.pack(block.k_begin, block.k, b_first + first, b_first + end - a_panels,
               block.packed_b + first * block.k * columns);
    }
  });
}

// What is read after a right panel, which the tiles of that bring near: each a part. Tiles are often too short for a
// division.
class Ahead {
 public:
  // Nothing: the same place again and again.
  explicit Ahead(const float* near) : next_(near) {}
  // Of k steps of a tile each brings the place near that is `step` bytes after that of the one before. The parts follow
  // each other and are so many, a power of two; tiles beyond them begin anew.
  Ahead(const float* next, int64_t k, int64_t step, int64_t parts)
      : next_(next), last_part_(parts - 1), step_(step), part_bytes_(k * step) {}

  const std::byte* part(int64_t tile) const {
    return reinterpret_cast<const std::byte*>(next_) + (tile & last_part_) * part_bytes_;
  }
  int64_t step() const { return step_; }

 private:
  const float* next_;
  int64_t last_part_ = 0;
  int64_t step_ = 0;  // bytes
  int64_t part_bytes_ = 0;
};

// The next right panel: a part for each tile where its rows follow each other, else all of it for each.
Ahead next_right_panel(const GemmPanel& panel, int width, int64_t k, int64_t tiles) {
  const bool is_packed = panel.stride == width;
  const int doublings = is_packed ? std::bit_width(static_cast<uint64_t>(std::min<int64_t>(tiles, 16))) - 1 : 0;
  return {panel.data, k, panel.stride * 4 >> doublings, int64_t{1} << doublings};
}

// The left panels from `index` on, one for each tile, unless their rows have much else between them.
Ahead next_left_panels(const Product& p, const Block& block, int64_t index, int64_t tiles) {
  constexpr int64_t line = 16;
  const int rows = p.kernels.tile_rows;
  const GemmPanel panel = block.packs_rows ? p.a.rows_of(block.k_begin, index)
                                           : block.panel(p.a, block.packed_a, block.row_panel, index, rows);
  const bool lies_in_rows = block.packs_rows || (p.a.has_rows() && index < p.a.ready());
  const int64_t row = lies_in_rows ? panel.stride : block.k;
  if (row * rows > block.k * line) return Ahead(panel.data);
  const auto parts = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tiles)));
  return {panel.data, block.k, row * rows * 4 / std::max<int64_t>(1, block.k), parts};
}

// A left side of one row times some panels at a time, if they are packed. Returns the first panel that is left.
int64_t multiply_row(const Product& p, const Block& block, int64_t column_begin, int64_t column_end, GemmTile tile) {
  const int columns = p.kernels.tile_columns, at_once = p.kernels.panels_at_once;
  const bool last_k = block.k_begin + block.k == p.k;
  const float* a = block.panel(p.a, block.packed_a, block.row_panel, 0, p.kernels.tile_rows).data;
  const auto panel_at = [&](int64_t j) { return block.panel(p.b, block.packed_b, block.column_panel, j, columns); };
  if (panel_at(column_begin).stride != columns) return column_begin;
  const int64_t panels = column_end - column_begin, groups = divide_up(panels, at_once);
  for (int64_t turn = 0; turn < groups; ++turn) {
    const int64_t group = p.backwards ? groups - 1 - turn : turn;
    const int64_t j = column_begin + group * panels / groups, end = column_begin + (group + 1) * panels / groups;
    tile.columns = static_cast<int>(std::min<int64_t>(columns, p.n - (end - 1) * columns));
    tile.c = p.c + j * columns;
    tile.addend = p.epilogue.addend ? p.epilogue.addend + j * columns * p.epilogue.addend_column_stride : nullptr;
    tile.residual = p.epilogue.residual && last_k ? p.epilogue.residual + j * columns : nullptr;
    p.kernels.row_of_panels[end - j](block.k, a, panel_at(j).data, block.k * columns, tile);
  }
  return column_end;
}

void multiply_tiles(const Product& p, const Block& block, int64_t row_begin, int64_t row_end, int64_t column_begin,
                    int64_t column_end) {
  const GemmEpilogue& e = p.epilogue;
  const int rows = p.tile_rows(), columns = p.kernels.tile_columns;
  const bool last_k = block.k_begin + block.k == p.k;
  GemmTile tile = tile_of(e, p.ldc, last_k);
  tile.accumulate = block.k_begin > 0;
  const int64_t first_tile = p.m == 1 ? multiply_row(p, block, column_begin, column_end, tile) : column_begin;
  const int64_t rows_end = p.has_halves ? row_end : p.a.has_rows() ? p.a.ready() : 0;
  GemmPanel next = block.panel(p.b, block.packed_b, block.column_panel, first_tile, columns);
  for (int64_t j = first_tile; j < column_end; ++j) {
    const GemmPanel b = next;
    if (j + 1 < column_end) next = block.panel(p.b, block.packed_b, block.column_panel, j + 1, columns);
    tile.columns = static_cast<int>(std::min<int64_t>(columns, p.n - j * columns));
    tile.c = p.c + row_begin * rows * p.ldc + j * columns;
    tile.addend =
        e.addend ? e.addend + row_begin * rows * e.addend_row_stride + j * columns * e.addend_column_stride : nullptr;
    tile.residual = e.residual && last_k ? e.residual + (tile.c - p.c) : nullptr;
    // A tile of few rows is done before much could be brought near: the full ones share that, if there are any.
    const int64_t tiles = std::max<int64_t>(1, std::min(row_end, p.m / rows) - row_begin);
    const Ahead ahead = j + 1 < column_end              ? next_right_panel(next, columns, block.k, tiles)
                        : row_end < block.row_panel_end ? next_left_panels(p, block, row_end, tiles)
                                                        : Ahead(b.data);
    tile.ahead_step = ahead.step();
    // A right side that was packed is near.
    const bool fetches_soon = p.soon && j >= p.b.ready();
    GemmPanel a{};
    for (int64_t i = row_begin; i < row_end; ++i) {
      if (i == row_begin || i == rows_end) a = block.panel(p.a, block.packed_a, block.row_panel, i, rows);
      tile.ahead = ahead.part(i - row_begin);
      if (fetches_soon) p.soon->fetch(block.k, tile);
      if (i < rows_end) {
        const auto multiply = !p.has_halves                 ? p.kernels.rows_in_place
                              : p.m - i * rows >= half_rows ? p.kernels.halves_in_place[0]
                                                            : p.kernels.halves_in_place[1];
        multiply(block.k, a, b, tile);
        a.data += rows * a.stride;
      } else if (block.packs_rows && j == block.column_panel && i < p.m / rows) {
        float* packed = block.packed_a + (i - block.row_panel) * block.k * rows;
        p.kernels.rows_to_pack(block.k, p.a.rows_of(block.k_begin, i), b, tile, packed);
        a.data += rows * block.k;
      } else {
        p.kernels.by_rows[std::min<int64_t>(rows, p.m - i * rows)](block.k, a.data, b, tile);
        a.data += rows * block.k;
      }
      tile.c += rows * p.ldc;
      if (tile.addend) tile.addend += rows * e.addend_row_stride;
      if (tile.residual) tile.residual += rows * p.ldc;
    }
  }
  if (!e.activation || !last_k) return;
  const int64_t first = column_begin * columns, count = std::min(column_end * columns, p.n) - first;
  for (int64_t i = row_begin * rows; i < std::min(row_end * rows, p.m); ++i) {
    float* row = p.c + i * p.ldc + first;
    e.activation(row, row, count);
  }
}

// Left panels that stay in the L2 cache beside the right panels and the tiles that pass through it, few enough to be
// read at full speed.
int64_t cached_panels(const GemmKernels& kernels, int64_t k) {
  return std::max<int64_t>(1, cpu_features().l2_bytes / 8 / std::max<int64_t>(1, k * kernels.tile_rows * 4));
}

// Left panels of a task: those that stay in the L2 cache, or in the L1 cache where they are rows in place, which are
// read more slowly from the other.
int64_t panels_per_task(const Product& p, int64_t k) {
  if (!p.a.has_rows() || p.kernels.reads_many_columns_in_place) return cached_panels(p.kernels, k);
  constexpr int64_t least = 4;
  return std::max(least, cpu_features().l1d_bytes / 4 / std::max<int64_t>(1, k * p.kernels.tile_rows * 4));
}

// Cuts the block into tasks: rows so that a task's left panels stay in a cache, columns so that there are enough tasks
// for all threads.
void multiply_block(const Product& p, const Block& block) {
  const int64_t row_panels = block.row_panel_end - block.row_panel;
  const int64_t column_panels = block.column_panel_end - block.column_panel;
  int64_t row_tasks = divide_up(row_panels, panels_per_task(p, block.k));
  const int64_t wanted = p.tasks();
  int64_t column_tasks = std::min(column_panels, divide_up(wanted, row_tasks));
  if (p.epilogue.activation) {
    const int64_t floats = row_panels * p.kernels.tile_rows * column_panels * p.kernels.tile_columns;
    const int64_t most = divide_up(column_panels * p.kernels.tile_columns, row_to_activate);
    column_tasks = std::max(column_tasks, std::min(most, floats / floats_to_activate()));
    row_tasks = std::max(row_tasks, std::min(row_panels, floats / column_tasks / floats_to_activate()));
  }
  if (row_tasks * column_tasks < wanted) row_tasks = std::min(row_panels, divide_up(wanted, column_tasks));
  const int64_t rows_each = divide_up(row_panels, row_tasks);
  const int64_t columns_each = divide_up(column_panels, column_tasks);
  row_tasks = divide_up(row_panels, rows_each);
  column_tasks = divide_up(column_panels, columns_each);
  p.share(row_tasks * column_tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = block.row_panel + task / column_tasks * rows_each;
      const int64_t column = block.column_panel + task % column_tasks * columns_each;
      multiply_tiles(p, block, row, std::min(row + rows_each, block.row_panel_end), column,
                     std::min(column + columns_each, block.column_panel_end));
    }
  });
}

// Panels per step, about as many in each, when `source` has to be packed; all of them when it is ready.
int64_t panels_per_step(const PanelSource& source, int64_t panels, int64_t most) {
  return source.ready() >= panels ? panels : divide_up(panels, divide_up(panels, std::max<int64_t>(most, 1)));
}

// A left side of few rows times a right side that is ready: what bounds it is reading that. Threads pack the left side
// whole, and each task goes through all of k with columns of its own, and rows of its own where columns are few. One
// thread alone packs a k block of the left side, which stays in its L2 cache while all columns pass by, then the next.
class FewRows {
 public:
  FewRows(const Product& p, int64_t k_block, int64_t row_panels, int64_t column_panels)
      : p_(p),
        k_block_(k_block),
        blocks_(std::max<int64_t>(1, divide_up(p.k, k_block))),
        row_panels_(row_panels),
        column_panels_(column_panels),
        unready_(std::max<int64_t>(0, row_panels - p.a.ready())),
        packed_(static_cast<size_t>(unready_ * p.kernels.tile_rows * (p.is_shared() ? p.k : k_block)) * sizeof(float)) {
    int64_t tasks = p.tasks();
    if (p.epilogue.activation) tasks = std::max(tasks, p.m * p.n / floats_to_activate());
    columns_each_ = divide_up(column_panels, std::min(tasks, column_panels));
    column_tasks_ = divide_up(column_panels, columns_each_);
    rows_each_ = divide_up(row_panels, std::min(row_panels, divide_up(tasks, column_tasks_)));
    if (p.a.has_rows() && !p.kernels.reads_many_columns_in_place)
      rows_each_ = std::min(rows_each_, panels_per_task(p, k_block));
  }

  void multiply() const {
    const int64_t tasks = divide_up(row_panels_, rows_each_) * column_tasks_;
    if (!p_.is_shared()) {
      for (int64_t index = 0; index < blocks_; ++index) {
        for (int64_t panel = 0; panel < unready_; ++panel) pack(index, panel);
        for (int64_t task = 0; task < tasks; ++task) multiply(index, task);
      }
      return;
    }
    const int64_t grain = 1 + floats_per_pack_task / (k_block_ * p_.kernels.tile_rows);
    p_.share(blocks_ * unready_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) pack(i / unready_, i % unready_);
    });
    p_.share(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        for (int64_t index = 0; index < blocks_; ++index) multiply(index, task);
      }
    });
  }

 private:
  Block block(int64_t index) const {
    const int64_t k_begin = index * k_block_, before = p_.is_shared() ? k_begin : 0;
    return {k_begin,
            std::min(k_block_, p_.k - k_begin),
            0,
            row_panels_,
            0,
            column_panels_,
            packed_.as<float>() + unready_ * p_.kernels.tile_rows * before,
            nullptr};
  }

  void pack(int64_t index, int64_t panel) const {
    const Block own = block(index);
    const int64_t first = p_.a.ready() + panel;
    p_.a.pack(own.k_begin, own.k, first, first + 1, own.packed_a + panel * own.k * p_.kernels.tile_rows);
  }

  void multiply(int64_t index, int64_t task) const {
    const int64_t row = task / column_tasks_ * rows_each_, column = task % column_tasks_ * columns_each_;
    multiply_tiles(p_, block(index), row, std::min(row + rows_each_, row_panels_), column,
                   std::min(column + columns_each_, column_panels_));
  }

  const Product& p_;
  const int64_t k_block_, blocks_, row_panels_, column_panels_, unready_;
  const Scratch packed_;
  int64_t columns_each_, column_tasks_, rows_each_;
};

}  // namespace

MatrixPanels::MatrixPanels(const GemmKernels& kernels, GemmSide side, const float* data, int64_t ld,
                           bool lanes_contiguous, int64_t lanes, bool read_in_place)
    : kernels_(kernels),
      side_(side),
      data_(data),
      ld_(ld),
      lanes_contiguous_(lanes_contiguous),
      lanes_(lanes),
      width_(side == GemmSide::left ? kernels.tile_rows : kernels.tile_columns),
      ready_(!read_in_place                         ? 0
             : side == GemmSide::left && lanes == 1 ? 1
                                                    : lanes / width_) {}

GemmPanel PanelSource::rows_of(int64_t, int64_t) const { return {nullptr, 0}; }

GemmPanel MatrixPanels::rows_of(int64_t k_begin, int64_t panel) const {
  if (side_ != GemmSide::left || lanes_contiguous_ || ready_ > 0) return {nullptr, 0};
  return {data_ + panel * width_ * ld_ + k_begin, ld_};
}

GemmPanel MatrixPanels::ready_panel(int64_t k_begin, int64_t, int64_t panel) const {
  if (side_ == GemmSide::left) return {data_ + panel * width_ * ld_ + k_begin, ld_};
  return {data_ + k_begin * ld_ + panel * width_, ld_};
}

void MatrixPanels::pack(int64_t k_begin, int64_t k, int64_t first, int64_t last, float* out) const {
  const auto pack_lanes = side_ == GemmSide::left ? kernels_.pack_rows : kernels_.pack_transposed_columns;
  if (!lanes_contiguous_ && pack_lanes) {
    for (; first < std::min(last, lanes_ / width_); ++first, out += k * width_)
      pack_lanes(data_ + first * width_ * ld_ + k_begin, ld_, k, out);
  }
  if (side_ == GemmSide::right && lanes_contiguous_) {
    const int64_t full = std::clamp(lanes_ / width_, first, last);
    kernels_.pack_columns(data_ + k_begin * ld_ + first * width_, ld_, full - first, k, out);
    out += (full - first) * k * width_;
    first = full;
  }
  if (first >= last) return;
  const int64_t lane = first * width_;
  const float* src = data_ + (lanes_contiguous_ ? k_begin * ld_ + lane : lane * ld_ + k_begin);
  pack_panels(src, ld_, lanes_contiguous_, std::min(last * width_, lanes_) - lane, k, width_, side_ == GemmSide::right,
              out);
}

PackedPanels::PackedPanels(const PackedMatrix& matrix, int64_t first)
    : data_(matrix.buffer_.as<float>()),
      first_(first),
      panels_(divide_up(matrix.lanes_, matrix.width_)),
      width_(matrix.width_) {}

GemmPanel PackedPanels::ready_panel(int64_t k_begin, int64_t k, int64_t panel) const {
  return {data_ + (k_begin * panels_ + (first_ + panel) * k) * width_, width_};
}

void ReadSoon::add(const float* data, int64_t floats) {
  parts_[count_++] = {reinterpret_cast<const std::byte*>(data), static_cast<size_t>(floats) * sizeof(float)};
}

void ReadSoon::spread(int64_t steps) {
  constexpr int64_t line = 64;
  size_t bytes = 0;
  for (size_t i = 0; i < count_; ++i) bytes += parts_[i].size();
  bytes_of_step_ = std::min(line, divide_up(static_cast<int64_t>(bytes), std::max<int64_t>(1, steps)));
}

void ReadSoon::fetch(int64_t steps, GemmTile& tile) {
  while (next_ < count_ && parts_[next_].empty()) ++next_;
  tile.ahead_step = next_ < count_ ? bytes_of_step_ : 0;
  if (next_ == count_) return;
  std::span<const std::byte>& part = parts_[next_];
  tile.ahead = part.data();
  part = part.subspan(std::min(static_cast<size_t>(steps * bytes_of_step_), part.size()));
}

int64_t gemm_k_block(const GemmKernels& kernels, int64_t k) {
  // A panel of each side fits into the L1 cache. Where that is small, the wider one comes from the L2 cache in time,
  // and longer panels cost less than reading and writing tiles more often.
  constexpr int64_t shortest = 512, longest = 768, longest_in_l2 = 1024;
  const int64_t fits = cpu_features().l1d_bytes / (4 * (kernels.tile_rows + kernels.tile_columns));
  const bool l2_holds_many = cpu_features().l2_bytes >= 8 * 4 * longest_in_l2 * kernels.tile_columns;
  const int64_t most = fits >= shortest ? std::min(fits, longest) : l2_holds_many ? longest_in_l2 : shortest;
  return k <= most ? std::max<int64_t>(k, 1) : divide_up(k, divide_up(k, most));
}

void gemm_blocked(ThreadPool* pool, const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const PanelSource& a,
                  const PanelSource& b, float* c, int64_t ldc, const GemmEpilogue& epilogue, bool backwards,
                  ReadSoon* soon) {
  if (m <= 0 || n <= 0) return;
  Product p{pool, kernels, m, n, k, a, b, c, ldc, epilogue, backwards, soon};
  const int64_t k_block = gemm_k_block(kernels, k);
  const int64_t row_panels = divide_up(m, kernels.tile_rows), column_panels = divide_up(n, kernels.tile_columns);
  const bool alone = !p.is_shared();
  if (!alone) p.soon = nullptr;
  if (p.soon) p.soon->spread(row_panels * column_panels * k);
  const bool is_ready = alone && a.ready() == 1 && b.ready() >= column_panels;
  p.has_halves = is_ready && kernels.halves_in_place[0] && m > kernels.tile_rows && m <= 2 * half_rows && a.has_rows();
  if (p.has_halves || (is_ready && row_panels == 1)) {
    // Nothing to pack, nothing to share.
    const int64_t tiles = p.has_halves ? 2 : 1;
    for (int64_t k_begin = 0; k_begin == 0 || k_begin < k; k_begin += k_block) {
      multiply_tiles(p, {k_begin, std::min(k_block, k - k_begin), 0, tiles, 0, column_panels, nullptr, nullptr}, 0,
                     tiles, 0, column_panels);
    }
    return;
  }
  const bool is_few = row_panels <= few_parts * cached_panels(kernels, k_block) &&
                      row_panels * kernels.tile_rows * k <= most_few_floats;
  if (is_few && b.ready() >= column_panels) return FewRows(p, k_block, row_panels, column_panels).multiply();
  const int64_t rows_step = panels_per_step(a, row_panels, most_left_floats / (k_block * kernels.tile_rows));
  // Threads pack more at once where that is little beside the product or the right side itself.
  const int64_t right_floats = alone ? cpu_features().l2_bytes / 2 / 4
                                     : std::clamp(std::max(m, k / 16) * n, least_right_floats, most_right_floats);
  const int64_t columns_step = panels_per_step(b, column_panels, right_floats / (k_block * kernels.tile_columns));
  const int64_t a_floats =
      std::min(rows_step, std::max<int64_t>(0, row_panels - a.ready())) * k_block * kernels.tile_rows;
  const int64_t b_floats =
      std::min(columns_step, std::max<int64_t>(0, column_panels - b.ready())) * k_block * kernels.tile_columns;
  const Scratch scratch(static_cast<size_t>(a_floats + b_floats + 16) * sizeof(float));
  float* packed_a = scratch.as<float>();
  float* packed_b = packed_a + (a_floats + 15) / 16 * 16;
  const bool packs_rows = alone && kernels.rows_to_pack && a.rows_of(0, 0).data;

  for (int64_t k_begin = 0; k_begin == 0 || k_begin < k; k_begin += k_block) {
    for (int64_t row = 0; row < row_panels; row += rows_step) {
      for (int64_t column = 0; column < column_panels; column += columns_step) {
        const Block block{k_begin,
                          std::min(k_block, k - k_begin),
                          row,
                          std::min(row + rows_step, row_panels),
                          column,
                          std::min(column + columns_step, column_panels),
                          packed_a,
                          packed_b,
                          packs_rows && column == 0};
        pack_block(p, block, column == 0, row == 0 || columns_step < column_panels);
        multiply_block(p, block);
      }
    }
  }
}

ThreadPool* pool_for_flops(ThreadPool& pool, double flops) { return flops < least_flops_to_share ? nullptr : &pool; }

}  // namespace tenon::kernels
