// What code_products.h says, with AMX. Sums leave the tile registers through memory; they become codes a pair of panels
// later, row by row after each step, as vectors and tiles are computed side by side. Two panels are 64 codes of a row:
// a cache line that is stored at once. Rows of the left side stay in the first cache, past which weights are loaded. A
// register is loaded for the next step as soon as its last product of this one has begun: a load waits for all stores
// before it that lie at the same place in a page, and those wait for the products before them.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <immintrin.h>

#include <algorithm>

#include "base/rounding.h"
#include "kernels/amx_tiles.h"
#include "kernels/code_products.h"

namespace tenon::kernels {
namespace {

// What the compiler may not move across.
[[gnu::always_inline]] inline void keep_order() { asm volatile("" ::: "memory"); }

template <bool Limited>
class AmxCodeProduct {
  static constexpr int rows = code_tile_rows, columns = code_tile_columns, pair = 2 * columns;
  static constexpr int64_t step_weights = int64_t{code_step_bytes} * columns;

 public:
  explicit AmxCodeProduct(const CodeProduct& product)
      : p_(product),
        panel_bytes_(product.steps * step_weights),
        ahead_lines_(lines_ahead(product)),
        units_in_a_step_(divide_up<int64_t>(rows / 2, product.steps)) {}

  void run() {
    const int64_t at_once = std::max<int64_t>(2, p_.panels_at_once / 2 * 2);
    for (int64_t panel = 0; panel < p_.panels; panel += at_once) {
      const int64_t panel_end = std::min(panel + at_once, p_.panels);
      ahead_ = p_.weights + panel_end * panel_bytes_;
      fetches_ = panel_end < p_.panels ? ahead_lines_ : 0;
      for (int64_t tile = 0; tile < p_.tile_count; ++tile) {
        for (int64_t own = panel; own < panel_end; ++own) go_on_to({&p_.tiles[tile], own});
      }
    }
    multiply_loaded(loaded_);
    store_sums(sums_[slot_]);
    finished_ = now_;
    finished_.is_alone ? finish_rest<true>() : finish_rest<false>();
  }

 private:
  struct Tile {
    const CodeRows* rows = nullptr;
    int64_t panel = 0;
  };

  // One or two panels whose sums become codes.
  struct Sums {
    const CodeRows* rows = nullptr;
    int64_t column = 0;
    int slot = 0;  // those of the second panel are in the next one
    bool is_alone = true;
  };

  // How many lines of the weights of the next panels are fetched in a step: so many that all are while the rows pass
  // by.
  static int64_t lines_ahead(const CodeProduct& product) {
    constexpr int64_t many_tiles = 16, step_lines = step_weights / 64;
    return product.tile_count > many_tiles ? 0 : (step_lines + product.tile_count - 1) / product.tile_count;
  }

  // Multiplies the tile before, now that it is known what is to be loaded after it.
  void go_on_to(const Tile& tile) {
    loaded_.rows ? multiply_loaded(tile) : load(tile);
    loaded_ = tile;
  }

  const uint8_t* weights_of(const Tile& tile) const { return p_.weights + tile.panel * panel_bytes_; }

  void load(const Tile& tile) const {
    const auto stride = static_cast<size_t>(tile.rows->stride);
    const uint8_t *a = tile.rows->first + tile.rows->offsets[0], *b = weights_of(tile);
    _tile_loadd(4, a, stride);
    _tile_loadd(5, a + 16 * stride, stride);
    _tile_stream_loadd(6, b, 4 * columns);
    _tile_stream_loadd(7, b + 64, 4 * columns);
  }

  // The tile whose first step is loaded. While a pair is multiplied, the one before becomes codes: half of it with each
  // panel.
  void multiply_loaded(const Tile& next) {
    int32_t* before = sums_[slot_];
    slot_ = next_slot(slot_);
    int unit = 0, unit_end = 0;
    if (loaded_.panel % 2 != 0) {
      now_.is_alone = false;
      unit = units_with_first_;
      unit_end = units();
    } else {
      finished_ = now_;
      now_ = {loaded_.rows, loaded_.panel * columns, slot_, true};
      const bool has_second = loaded_.panel + 1 < p_.panels;
      unit_end = units_with_first_ = has_second ? units() / 2 : units();
    }
    const int count = unit_end - unit;
    if (fetches_ > 0)
      finished_.is_alone ? multiply<true, true>(next, before, unit, count)
                         : multiply<false, true>(next, before, unit, count);
    else
      finished_.is_alone ? multiply<true, false>(next, before, unit, count)
                         : multiply<false, false>(next, before, unit, count);
  }

  // How many times codes are made at once: those of a row, or of two if the panel is alone.
  int units() const { return !finished_.rows ? 0 : finished_.is_alone ? rows / 2 : rows; }

  // Sums of a pair are read while those of the first panel of the next one are stored.
  static constexpr int slots = 3;
  static int next_slot(int slot) { return slot + 1 == slots ? 0 : slot + 1; }

  static constexpr int64_t sums_stride = columns * sizeof(int32_t);
  static constexpr int second_rows = 16 * columns;

  static void store_sums(int32_t* to) {
    _tile_stored(0, to, sums_stride);
    _tile_stored(1, to + 16, sums_stride);
    _tile_stored(2, to + second_rows, sums_stride);
    _tile_stored(3, to + second_rows + 16, sums_stride);
  }

  // Multiplies a step and loads the next one. In the first step of a tile, sums of the one before leave the registers,
  // each as late as possible: products wait for a store that waits for its sums.
  template <bool IsFirst>
  [[gnu::always_inline]] static void step(const uint8_t* a, size_t stride, const uint8_t* b, int32_t* before) {
    if constexpr (IsFirst) {
      _tile_stored(0, before, sums_stride);
      _tile_zero(0);
    }
    _tile_dpbusd(0, 4, 6);
    if constexpr (IsFirst) {
      _tile_stored(2, before + second_rows, sums_stride);
      _tile_zero(2);
    }
    _tile_dpbusd(2, 5, 6);
    _tile_stream_loadd(6, b, 4 * columns);
    if constexpr (IsFirst) {
      _tile_stored(1, before + 16, sums_stride);
      _tile_zero(1);
    }
    _tile_dpbusd(1, 4, 7);
    _tile_loadd(4, a, stride);
    if constexpr (IsFirst) {
      _tile_stored(3, before + second_rows + 16, sums_stride);
      _tile_zero(3);
    }
    _tile_dpbusd(3, 5, 7);
    _tile_stream_loadd(7, b + 64, 4 * columns);
    _tile_loadd(5, a + 16 * stride, stride);
    keep_order();
  }

  // The loaded tile, while `left` units from `unit` on of the pair before become codes: some in each step, so that all
  // of them do. The last step loads the first one of the next tile.
  template <bool IsAlone, bool Fetches>
  [[gnu::noinline]] void multiply(const Tile& next, int32_t* before, int unit, int64_t left) {
    const int64_t steps = p_.steps, in_a_step = units_in_a_step_;
    const int64_t* offsets = loaded_.rows->offsets;
    const uint8_t *first = loaded_.rows->first, *b = weights_of(loaded_);
    auto stride = static_cast<size_t>(loaded_.rows->stride);
    Unit<IsAlone> codes(*this, unit);
    for (int64_t at = 1; at <= steps; ++at) {
      const uint8_t* a = nullptr;
      int64_t rest = std::max<int64_t>(0, left - in_a_step);
      if (at < steps) [[likely]] {
        a = first + offsets[at];
        b += step_weights;
      } else {
        a = next.rows->first + next.rows->offsets[0];
        stride = static_cast<size_t>(next.rows->stride);
        b = weights_of(next);
        rest = 0;
      }
      at == 1 ? step<true>(a, stride, b, before) : step<false>(a, stride, b, before);
      for (; left > rest; --left) codes.finish();
      if constexpr (Fetches) fetch_ahead();
    }
  }

  void fetch_ahead() {
    for (int64_t line = 0; line < fetches_; ++line, ahead_ += 64) _mm_prefetch(ahead_, _MM_HINT_T1);
  }

  // Makes codes of one unit after the other, with all that it needs in registers.
  template <bool IsAlone>
  class Unit {
    static constexpr int unit_rows = IsAlone ? 2 : 1;

   public:
    [[gnu::always_inline]] Unit(const AmxCodeProduct& all, int unit)
        : first_sums_(all.sums_[all.finished_.slot] + unit_rows * unit * columns),
          second_sums_(IsAlone ? first_sums_ + columns : all.sums_[next_slot(all.finished_.slot)] + unit * columns),
          to_(all.finished_.rows ? all.finished_.rows->to + unit_rows * unit : nullptr),
          column_(all.finished_.column) {
      const CodeProduct& p = all.p_;
      const int64_t left = p.stored - column_;
      some_ = left >= pair ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
      const int flip = p.is_signed ? 128 : 0;
      zero_ = _mm512_set1_epi16(static_cast<int16_t>(p.zero + flip));
      flip_ = _mm512_set1_epi8(static_cast<char>(flip));
      high_ = _mm512_set1_ps(static_cast<float>(255 - flip - p.zero));
      const auto quarter = [&](int i) {
        const auto own = static_cast<__mmask16>(some_ >> (16 * i));
        return Quarter{_mm512_maskz_loadu_epi32(own, p.bias + column_ + 16 * i),
                       _mm512_maskz_loadu_ps(own, p.scales + column_ + 16 * i)};
      };
      first_ = quarter(0);
      second_ = quarter(1);
      third_ = IsAlone ? first_ : quarter(2);
      fourth_ = IsAlone ? second_ : quarter(3);
    }

    [[gnu::always_inline]] void finish() {
      const __m512i a = _mm512_packs_epi32(whole(first_sums_, first_), whole(first_sums_ + 16, second_));
      const __m512i b = _mm512_packs_epi32(whole(second_sums_, third_), whole(second_sums_ + 16, fourth_));
      const __m512i bytes = _mm512_packus_epi16(_mm512_adds_epi16(a, zero_), _mm512_adds_epi16(b, zero_));
      // Packing takes four numbers of each vector in turn.
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      const __m512i codes = _mm512_xor_si512(_mm512_permutexvar_epi32(order, bytes), flip_);
      if constexpr (IsAlone) {
        const auto some = static_cast<__mmask32>(some_);
        _mm256_mask_storeu_epi8(to_[0] + column_, some, _mm512_castsi512_si256(codes));
        _mm256_mask_storeu_epi8(to_[1] + column_, some, _mm512_extracti64x4_epi64(codes, 1));
      } else {
        _mm512_mask_storeu_epi8(*to_ + column_, some_, codes);
      }
      first_sums_ += unit_rows * columns;
      second_sums_ += unit_rows * columns;
      to_ += unit_rows;
      keep_order();
    }

   private:
    // Of 16 columns. Not an array of four, which would not be in registers.
    struct Quarter {
      __m512i bias;
      __m512 scales;
    };

    [[gnu::always_inline]] __m512i whole(const int32_t* sums, const Quarter& own) const {
      const __m512i sum = _mm512_add_epi32(_mm512_load_si512(sums), own.bias);
      __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), own.scales);
      if constexpr (!Limited) scaled = _mm512_min_ps(high_, scaled);
      return _mm512_cvtps_epi32(scaled);
    }

    const int32_t *first_sums_, *second_sums_;
    uint8_t* const* to_;
    int64_t column_;
    __mmask64 some_;
    __m512i zero_, flip_;
    __m512 high_;
    Quarter first_, second_, third_, fourth_;
  };

  template <bool IsAlone>
  void finish_rest() {
    Unit<IsAlone> codes(*this, 0);
    for (int left = units(); left > 0; --left) codes.finish();
  }

  const CodeProduct& p_;
  const int64_t panel_bytes_, ahead_lines_, units_in_a_step_;
  int64_t fetches_ = 0;
  const uint8_t* ahead_ = nullptr;
  Tile loaded_;
  Sums now_, finished_;
  int slot_ = 0, units_with_first_ = 0;
  alignas(64) int32_t sums_[slots][rows * columns];
};

inline void multiply_codes(const CodeProduct& product) {
  product.is_limited ? AmxCodeProduct<true>(product).run() : AmxCodeProduct<false>(product).run();
}

}  // namespace
}  // namespace tenon::kernels
