#include "kernels/gemm_nbits/gemm_nbits.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstring>
#include <limits>

#include "base/cpu_features.h"
#include "base/rounding.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// The most products of codes and digits whose sums stay between two powers of two of the kernels' floats.
constexpr int64_t longest_run = 128;
constexpr int64_t products_per_task = 128 << 10;

int kind_of(int bits) { return std::countr_zero(static_cast<unsigned>(bits)) - 1; }

// Bytes of the scales and zero points of a block, and of all that a panel has of it.
int64_t head_bytes(int columns, bool has_zeros) {
  return columns * static_cast<int64_t>(sizeof(float)) * (has_zeros ? 2 : 1);
}
int64_t block_bytes(int columns, bool has_zeros, int64_t steps, int bits) {
  return head_bytes(columns, has_zeros) + columns * steps * bits / 8;
}

int middle_of(int bits) { return 1 << (bits - 1); }

uint8_t code_at(const NbitsMatrix& m, const uint8_t* column, int64_t step) {
  const int64_t bit = step * m.bits;
  return static_cast<uint8_t>(column[bit / 8] >> (bit % 8) & ((1 << m.bits) - 1));
}

// Codes of a block for `columns` from `first` on. A byte holds those of the first columns, then of the others, and of
// the next group where they are of 2 bits.
void pack_codes(const NbitsMatrix& m, int64_t block, int64_t first, int columns, uint8_t* to) {
  const int64_t column_bytes = m.blocks() * m.block * m.bits / 8;
  const int codes = 8 / m.bits, halves = std::min(codes, 2), groups = codes / halves;
  const int of_half = columns / halves;
  for (int64_t group = 0; group < m.block / nbits_group; group += groups) {
    for (int i = 0; i < of_half * nbits_group; ++i) {
      int byte = 0;
      for (int part = 0; part < codes; ++part) {
        const int64_t column = first + i / nbits_group + part % halves * of_half;
        const int64_t step = (group + part / halves) * nbits_group + i % nbits_group;
        if (column >= m.n) continue;
        byte |= code_at(m, m.codes + column * column_bytes, block * m.block + step) << (part * m.bits);
      }
      *to++ = static_cast<uint8_t>(byte);
    }
  }
}

void pack_block(const NbitsMatrix& m, int64_t block, int64_t first, int columns, uint8_t* to) {
  const auto put = [&](auto number_at) {
    for (int64_t column = first; column < first + columns; ++column, to += sizeof(float)) {
      const float number = column < m.n ? number_at(column * m.blocks() + block) : 0.0f;
      std::memcpy(to, &number, sizeof number);
    }
  };
  put([&](int64_t at) { return m.scales[at]; });
  if (m.has_zeros) {
    const auto middle = static_cast<float>(middle_of(m.bits));
    put([&](int64_t at) { return (m.zeros ? static_cast<float>(m.zeros[at]) : m.float_zeros[at]) - middle; });
  }
  pack_codes(m, block, first, columns, to);
}

// What becomes of some rows: see NbitsTile.
struct DigitRows {
  int8_t* digits;
  int32_t* starts;
  float *scales, *totals;
};

// A block is a multiple of so many steps; loops over them need no rest.
constexpr int piece = 16;

// The largest number of a run without its sign, as the bits of a float: those of NaN are larger than all.
inline uint32_t largest(const float* x, int64_t run) {
  uint32_t highest[piece] = {};
  for (int64_t i = 0; i < run; i += piece) {
    for (int j = 0; j < piece; ++j) highest[j] = std::max(highest[j], std::bit_cast<uint32_t>(x[i + j]) & 0x7fffffffu);
  }
  uint32_t result = 0;
  for (int j = 0; j < piece; ++j) result = std::max(result, highest[j]);
  return result;
}

// The digits of a piece's numbers, of which `factor` makes whole ones, highest first.
template <int Digits>
void piece_to_digits(const float* x, float factor, int8_t (&digits)[Digits][longest_run], int64_t at) {
  int32_t numbers[piece];
  for (int i = 0; i < piece; ++i) {
    const float value = x[at + i] * factor;
    numbers[i] = static_cast<int32_t>(value + (value < 0 ? -0.5f : 0.5f));
  }
  for (int d = Digits - 1; d >= 0; --d) {
    for (int i = 0; i < piece; ++i) {
      digits[d][at + i] = static_cast<int8_t>(numbers[i]);
      numbers[i] = (numbers[i] + 128) >> 8;
    }
  }
}

// A run of a row, between those of other rows: `group` steps at a time.
void copy_groups(const int8_t* from, int64_t run, int64_t group, int rows, int8_t* to) {
  const auto copy = [&]<int64_t Group>() {
    for (int64_t i = 0; i < run; i += Group) std::memcpy(to + i * rows, from + i, Group);
  };
  if (group == 4)
    copy.operator()<4>();
  else if (group == 8)
    copy.operator()<8>();
  else
    for (int64_t i = 0; i < run; i += group) std::memcpy(to + i * rows, from + i, static_cast<size_t>(group));
}

// What makes whole numbers of those of a run, whose largest has these bits, and what makes them what they were.
struct RunScale {
  float factor, scale;
};

template <int Digits>
RunScale run_scale(uint32_t largest_bits) {
  constexpr float most = Digits == 1 ? 127.0f : Digits == 2 ? 127.0f * 256 : 127.0f * 65536;
  const float high = std::bit_cast<float>(largest_bits);
  if (!(high <= FLT_MAX)) return {0, std::numeric_limits<float>::quiet_NaN()};
  if (high < FLT_MIN * most) return {0, 0};
  return {most / high, high / most};
}

// A run of the first of `rows` rows, in groups of `group` steps.
template <int Digits>
void to_digits(const float* x, float factor, int64_t run, int rows, int64_t group, int32_t excess,
               const DigitRows& to) {
  int8_t digits[Digits][longest_run];
  if (factor == 0) std::memset(digits, 0, sizeof digits);
  for (int64_t i = 0; factor != 0 && i < run; i += piece) piece_to_digits(x, factor, digits, i);
  float total = 0;
  for (int d = 0; d < Digits; ++d) {
    int32_t sum = 0;
    for (int64_t i = 0; i < run; i += piece) {
      for (int j = 0; j < piece; ++j) sum += digits[d][i + j];
    }
    to.starts[d * rows] = std::bit_cast<int32_t>(nbits_base) - excess * sum;
    total = total * 256.0f + static_cast<float>(sum);
    copy_groups(digits[d], run, group, rows, to.digits + d * run * rows);
  }
  *to.totals = total;
}

}  // namespace

// One product: the rows' digits are made, some rows at a time, and multiplied by all panels.
class NbitsProduct {
 public:
  NbitsProduct(ThreadPool& pool, int digits, int64_t m, const float* a, const NbitsWeights& weights, const float* bias,
               float* y)
      : pool_(pool),
        digits_(digits),
        a_(a),
        w_(weights),
        kernels_(*weights.kernels_),
        bias_(bias),
        y_(y),
        run_(nbits_run(weights.block_)),
        runs_of_block_(weights.block_ / run_),
        runs_(weights.blocks_ * runs_of_block_),
        as_bytes_(kernels_.bytes.least_rows > 0 && m >= kernels_.bytes.least_rows),
        tile_rows_(as_bytes_ ? kernels_.bytes.rows[digits - 1][0] : nbits_tile_rows(digits)) {}

  // Rows whose digits stay in the L2 cache beside a panel.
  int64_t rows_at_once() const {
    const int64_t fit = cpu_features().l2_bytes / 4 / std::max<int64_t>(1, runs_ * run_ * digits_);
    return std::max<int64_t>(tile_rows_, fit / tile_rows_ * tile_rows_);
  }

  void multiply(int64_t first, int64_t rows) const {
    const int64_t runs = rows * runs_;
    const Scratch digits(static_cast<size_t>(runs * run_ * digits_)),
        numbers(static_cast<size_t>(runs * (digits_ + 2)) * sizeof(float));
    auto* floats = numbers.as<float>();
    const DigitRows all{digits.as<int8_t>(), numbers.as<int32_t>() + 2 * runs, floats, floats + runs};
    const auto each_tile = [&](int64_t begin, int64_t end, auto f) {
      for (int64_t row = begin * tile_rows_; row < std::min(end * tile_rows_, rows);) {
        const Way way = way_for(std::min(end * tile_rows_, rows) - row);
        f(row, way);
        row += way.rows;
      }
    };
    const int64_t tiles = divide_up(rows, tile_rows_);
    pool_.parallel_for(tiles, 1 + products_per_task / (16 * w_.k_ * tile_rows_), [&](int64_t begin, int64_t end) {
      each_tile(begin, end, [&](int64_t row, const Way& way) { make_digits(first + row, way, at(all, row)); });
    });
    const int64_t columns = kernels_.columns, panels = divide_up(w_.n_, columns);
    const bool unpacks = way_for(rows).as_bytes;  // the last rows may be too few for that
    pool_.parallel_for(panels, 1 + products_per_task / (w_.k_ * rows * columns), [&](int64_t begin, int64_t end) {
      const int64_t at_once = unpacks ? std::min(byte_panels_at_once(), end - begin) : 1;
      const Scratch bytes(unpacks ? static_cast<size_t>(at_once * byte_panel_bytes()) : 0);
      for (int64_t panel = begin; panel < end; panel += at_once) {
        const int64_t last = std::min(end, panel + at_once);
        const auto bytes_at = [&](int64_t p) { return bytes.as<uint8_t>() + (p - panel) * byte_panel_bytes(); };
        for (int64_t p = panel; unpacks && p < last; ++p) unpack(p, bytes_at(p));
        each_tile(0, tiles, [&](int64_t row, const Way& way) {
          for (int64_t p = panel; p < last; ++p)
            multiply(p, way.as_bytes ? bytes_at(p) : panel_at(p), first + row, way, at(all, row));
        });
      }
    });
  }

 private:
  // How some rows are multiplied, and what of a row lies side by side for that.
  struct Way {
    int rows;
    int64_t group;
    bool as_bytes;
    MultiplyNbits multiply;
  };

  // The next rows, of which so many are left.
  Way way_for(int64_t left) const {
    const int zeros = w_.has_zeros_ ? 1 : 0;
    const NbitsByteKernels& bytes = kernels_.bytes;
    for (int size = 0; as_bytes_ && size < NbitsByteKernels::sizes; ++size) {
      const int rows = bytes.rows[digits_ - 1][size];
      if (rows > 0 && rows <= left)
        return {rows, bytes.group > 0 ? bytes.group : run_, true, bytes.multiply[zeros][digits_ - 1][size]};
    }
    const auto most = static_cast<unsigned>(std::min<int64_t>(left, nbits_tile_rows(digits_)));
    const int power = std::bit_width(most) - 1;
    return {1 << power, nbits_group, false, kernels_.multiply[kind_of(w_.bits_)][zeros][digits_ - 1][power]};
  }

  // What follows after `runs` runs.
  DigitRows after(const DigitRows& rows, int64_t runs) const {
    return {rows.digits + runs * run_ * digits_, rows.starts + runs * digits_, rows.scales + runs, rows.totals + runs};
  }
  DigitRows at(const DigitRows& all, int64_t row) const { return after(all, row * runs_); }

  void make_digits(int64_t row, const Way& way, const DigitRows& to) const {
    const auto make = digits_ == 1   ? &NbitsProduct::make_row_digits<1>
                      : digits_ == 2 ? &NbitsProduct::make_row_digits<2>
                                     : &NbitsProduct::make_row_digits<3>;
    for (int r = 0; r < way.rows; ++r) {
      (this->*make)(a_ + (row + r) * w_.k_, way,
                    {to.digits + r * way.group, to.starts + r, to.scales + r, to.totals + r});
    }
  }

  // Digits of the first of some rows. Factors of some runs are found before they are used: none waits for a division.
  template <int Digits>
  void make_row_digits(const float* x, const Way& way, const DigitRows& to) const {
    constexpr int64_t at_once = 16;
    const int32_t excess = kernels_.excess[kind_of(w_.bits_)];
    for (int64_t first = 0; first < runs_; first += at_once) {
      const int64_t last = std::min(runs_, first + at_once);
      float factors[at_once], filled_up[longest_run];
      for (int64_t run = first; run < last; ++run) {
        const auto [factor, scale] = run_scale<Digits>(largest(run_at(x, run, filled_up), run_));
        factors[run - first] = factor;
        to.scales[run * way.rows] = scale;
      }
      for (int64_t run = first; run < last; ++run)
        to_digits<Digits>(run_at(x, run, filled_up), factors[run - first], run_, way.rows, way.group, excess,
                          after(to, run * way.rows));
    }
  }

  // A run of a row, filled up with zeros where the row ends in it.
  const float* run_at(const float* x, int64_t run, float* filled_up) const {
    const int64_t begin = std::min(run * run_, w_.k_), n = std::min(run_, w_.k_ - begin);
    if (n == run_) return x + begin;
    std::fill(std::copy_n(x + begin, n, filled_up), filled_up + run_, 0.0f);
    return filled_up;
  }

  int64_t byte_block_bytes() const { return block_bytes(kernels_.columns, w_.has_zeros_, w_.block_, 8); }
  int64_t byte_panel_bytes() const { return w_.blocks_ * byte_block_bytes(); }
  // Panels that stay in the first cache beside the digits of a tile's rows.
  int64_t byte_panels_at_once() const {
    const int64_t left = cpu_features().l1d_bytes - runs_ * run_ * digits_ * tile_rows_;
    return std::max<int64_t>(1, left / byte_panel_bytes() - 1);
  }
  const uint8_t* panel_at(int64_t panel) const { return w_.buffer_.as<uint8_t>() + panel * w_.panel_bytes_; }

  // A panel whose codes are bytes.
  void unpack(int64_t panel, uint8_t* to) const {
    kernels_.bytes.unpack[kind_of(w_.bits_)](w_.blocks_, head_bytes(kernels_.columns, w_.has_zeros_), w_.block_,
                                             panel_at(panel), to);
  }

  // `codes` are the panel's, as this way takes them.
  void multiply(int64_t panel, const uint8_t* codes, int64_t row, const Way& way, const DigitRows& left) const {
    const int columns = kernels_.columns, rows = way.rows;
    const int64_t first = panel * columns, count = std::min<int64_t>(columns, w_.n_ - first);
    float *to = y_ + row * w_.n_ + first, whole[most_nbits_rows * most_nbits_columns];
    const bool is_whole = count == columns;
    const NbitsTile tile{codes,
                         w_.blocks_,
                         runs_of_block_,
                         run_,
                         left.digits,
                         left.starts,
                         left.scales,
                         left.totals,
                         is_whole ? to : whole,
                         is_whole ? w_.n_ : columns};
    way.multiply(tile);
    for (int i = 0; !is_whole && i < rows; ++i) std::copy_n(whole + i * columns, count, to + i * w_.n_);
    for (int i = 0; bias_ && i < rows; ++i) {
      for (int64_t j = 0; j < count; ++j) to[i * w_.n_ + j] += bias_[first + j];
    }
  }

  ThreadPool& pool_;
  int digits_;
  const float* a_;
  const NbitsWeights& w_;
  const NbitsKernels& kernels_;
  const float* bias_;
  float* y_;
  int64_t run_, runs_of_block_, runs_;
  bool as_bytes_;  // there are rows enough to unpack codes before
  int tile_rows_;
};

std::vector<const NbitsKernels*> available_nbits_kernels() {
  std::vector<const NbitsKernels*> result = {&nbits_kernels_portable};
  [[maybe_unused]] const Isa isa = best_isa();
#if defined(__aarch64__)
  if (isa == Isa::neon && cpu_features().dotprod) result.push_back(&nbits_kernels_neon_dotprod);
  if (isa == Isa::neon && cpu_features().i8mm) result.push_back(&nbits_kernels_neon_i8mm);
#elif defined(__x86_64__)
  if (isa == Isa::avx2 || isa == Isa::avx512) result.push_back(&nbits_kernels_avx2);
  if (isa == Isa::avx512 && cpu_features().avx512_vnni) result.push_back(&nbits_kernels_avx512_vnni);
  if (isa == Isa::avx512 && cpu_features().amx) result.push_back(&nbits_kernels_amx);
#endif
  return result;
}

const NbitsKernels& nbits_kernels() { return *available_nbits_kernels().back(); }

int64_t nbits_run(int64_t block) { return std::min(block, longest_run); }

NbitsWeights::NbitsWeights(ThreadPool& pool, const NbitsMatrix& matrix, const NbitsKernels& kernels,
                           PackedStorage& storage)
    : kernels_(&kernels),
      n_(matrix.n),
      k_(matrix.k),
      block_(matrix.block),
      blocks_(matrix.blocks()),
      bits_(matrix.bits),
      has_zeros_(matrix.has_zeros),
      panel_bytes_(blocks_ * block_bytes(kernels.columns, has_zeros_, block_, bits_)) {
  const int columns = kernels.columns;
  const int64_t panels = divide_up(n_, columns);
  buffer_ = storage.get(static_cast<size_t>(panels * panel_bytes_), [&](void* memory) {
    pool.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * blocks_; i < end * blocks_; ++i)
        pack_block(matrix, i % blocks_, i / blocks_ * columns, columns,
                   static_cast<uint8_t*>(memory) + i * (panel_bytes_ / blocks_));
    });
  });
}

void gemm_nbits(ThreadPool& pool, int digits, int64_t m, const float* a, const NbitsWeights& weights, const float* bias,
                float* y) {
  const NbitsProduct product(pool, digits, m, a, weights, bias, y);
  const int64_t step = product.rows_at_once();
  for (int64_t row = 0; row < m; row += step) product.multiply(row, std::min(step, m - row));
}

}  // namespace tenon::kernels
