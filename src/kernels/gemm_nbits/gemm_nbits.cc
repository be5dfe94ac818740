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

int64_t bytes_of_block(const NbitsMatrix& m, int columns) {
  return columns * (static_cast<int64_t>(sizeof(float)) * (m.has_zeros ? 2 : 1) + m.block * m.bits / 8);
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

// The largest number of a run without its sign, as the bits of a float: those of NaN are larger than all.
uint32_t largest(const float* x, int64_t n) {
  uint32_t result = 0;
  for (int64_t i = 0; i < n; ++i) result = std::max(result, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  return result;
}

// A run of the first of `rows` rows: n numbers, and zeros up to `run`.
template <int Digits>
void to_digits(const float* x, int64_t n, int64_t run, int rows, int32_t excess, const DigitRows& to) {
  constexpr float most = Digits == 1 ? 127.0f : Digits == 2 ? 127.0f * 256 : 127.0f * 65536;
  const float high = std::bit_cast<float>(largest(x, n));
  const bool is_finite = high <= FLT_MAX, is_zero = high < FLT_MIN * most;
  const float factor = is_finite && !is_zero ? most / high : 0;
  *to.scales = is_finite ? (is_zero ? 0.0f : high / most) : std::numeric_limits<float>::quiet_NaN();
  int8_t digits[Digits][longest_run] = {};
  for (int64_t i = 0; factor != 0 && i < n; ++i) {
    const float value = x[i] * factor;
    auto number = static_cast<int32_t>(value + (value < 0 ? -0.5f : 0.5f));
    for (int d = Digits - 1; d >= 0; --d) {
      digits[d][i] = static_cast<int8_t>(number);
      number = (number - digits[d][i]) >> 8;
    }
  }
  float total = 0;
  for (int d = 0; d < Digits; ++d) {
    int32_t sum = 0;
    for (int64_t i = 0; i < run; ++i) sum += digits[d][i];
    to.starts[d * rows] = std::bit_cast<int32_t>(nbits_base) - excess * sum;
    total = total * 256.0f + static_cast<float>(sum);
    for (int64_t i = 0; i < run; i += nbits_group)
      std::memcpy(to.digits + (d * run + i) * rows, digits[d] + i, nbits_group);
  }
  *to.totals = total;
}

}  // namespace

// One product: the rows' digits are made, some rows at a time, and multiplied by all panels.
class NbitsProduct {
 public:
  NbitsProduct(ThreadPool& pool, int digits, const float* a, const NbitsWeights& weights, const float* bias, float* y)
      : pool_(pool),
        digits_(digits),
        a_(a),
        w_(weights),
        bias_(bias),
        y_(y),
        run_(nbits_run(weights.block_)),
        runs_(weights.blocks_ * weights.block_ / run_),
        tile_rows_(nbits_tile_rows(digits)) {}

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
        const auto left = static_cast<uint64_t>(std::min<int64_t>(tile_rows_, rows - row));
        const auto count = static_cast<int>(std::bit_floor(left));
        f(row, count);
        row += count;
      }
    };
    const int64_t tiles = divide_up(rows, tile_rows_);
    pool_.parallel_for(tiles, 1 + products_per_task / (16 * w_.k_ * tile_rows_), [&](int64_t begin, int64_t end) {
      each_tile(begin, end, [&](int64_t row, int count) { make_digits(first + row, count, at(all, row)); });
    });
    const int64_t columns = w_.kernels_->columns, panels = divide_up(w_.n_, columns);
    pool_.parallel_for(panels, 1 + products_per_task / (w_.k_ * rows * columns), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        each_tile(0, tiles, [&](int64_t row, int count) { multiply(panel, first + row, count, at(all, row)); });
      }
    });
  }

 private:
  // What follows after `runs` runs.
  DigitRows after(const DigitRows& rows, int64_t runs) const {
    return {rows.digits + runs * run_ * digits_, rows.starts + runs * digits_, rows.scales + runs, rows.totals + runs};
  }
  DigitRows at(const DigitRows& all, int64_t row) const { return after(all, row * runs_); }

  void make_digits(int64_t row, int count, const DigitRows& to) const {
    const auto convert = digits_ == 1 ? to_digits<1> : digits_ == 2 ? to_digits<2> : to_digits<3>;
    const int32_t excess = w_.kernels_->excess[kind_of(w_.bits_)];
    for (int64_t run = 0; run < runs_; ++run) {
      const int64_t begin = std::min(run * run_, w_.k_), n = std::min(run_, w_.k_ - begin);
      const DigitRows here = after(to, run * count);
      for (int r = 0; r < count; ++r) {
        convert(a_ + (row + r) * w_.k_ + begin, n, run_, count, excess,
                {here.digits + r * nbits_group, here.starts + r, here.scales + r, here.totals + r});
      }
    }
  }

  void multiply(int64_t panel, int64_t row, int rows, const DigitRows& left) const {
    const int columns = w_.kernels_->columns;
    float out[most_nbits_rows * most_nbits_columns];
    const NbitsTile tile{w_.buffer_.as<uint8_t>() + panel * w_.panel_bytes_,
                         w_.blocks_,
                         w_.block_ / run_,
                         run_ / nbits_group,
                         left.digits,
                         left.starts,
                         left.scales,
                         left.totals,
                         out};
    w_.kernels_->multiply[kind_of(w_.bits_)][w_.has_zeros_ ? 1 : 0][digits_ - 1]
                         [std::countr_zero(static_cast<unsigned>(rows))](tile);
    const int64_t first = panel * columns, count = std::min<int64_t>(columns, w_.n_ - first);
    for (int i = 0; i < rows; ++i) {
      float* to = y_ + (row + i) * w_.n_ + first;
      for (int64_t j = 0; j < count; ++j) to[j] = out[i * columns + j] + (bias_ ? bias_[first + j] : 0.0f);
    }
  }

  ThreadPool& pool_;
  int digits_;
  const float* a_;
  const NbitsWeights& w_;
  const float* bias_;
  float* y_;
  int64_t run_, runs_;
  int tile_rows_;
};

std::vector<const NbitsKernels*> available_nbits_kernels() {
  std::vector<const NbitsKernels*> result = {&nbits_kernels_portable};
  [[maybe_unused]] const Isa isa = best_isa();
#if defined(__aarch64__)
  if (isa == Isa::neon && cpu_features().dotprod) result.push_back(&nbits_kernels_neon_dotprod);
#elif defined(__x86_64__)
  if (isa == Isa::avx2 || isa == Isa::avx512) result.push_back(&nbits_kernels_avx2);
  if (isa == Isa::avx512 && cpu_features().avx512_vnni) result.push_back(&nbits_kernels_avx512_vnni);
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
      panel_bytes_(blocks_ * bytes_of_block(matrix, kernels.columns)) {
  const int columns = kernels.columns;
  const int64_t panels = divide_up(n_, columns), block_bytes = panel_bytes_ / blocks_;
  buffer_ = storage.get(static_cast<size_t>(panels * panel_bytes_), [&](void* memory) {
    pool.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * blocks_; i < end * blocks_; ++i)
        pack_block(matrix, i % blocks_, i / blocks_ * columns, columns,
                   static_cast<uint8_t*>(memory) + i * block_bytes);
    });
  });
}

void gemm_nbits(ThreadPool& pool, int digits, int64_t m, const float* a, const NbitsWeights& weights, const float* bias,
                float* y) {
  const NbitsProduct product(pool, digits, a, weights, bias, y);
  const int64_t step = product.rows_at_once();
  for (int64_t row = 0; row < m; row += step) product.multiply(row, std::min(step, m - row));
}

}  // namespace tenon::kernels
