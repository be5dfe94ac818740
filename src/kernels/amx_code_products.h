// What code_products.h says, with AMX. Sums leave the tile registers through memory; they become codes a pair of panels
// later, row by row between the products, as vectors and tiles are computed side by side. Two panels are 64 codes of a
// row: a cache line that is stored at once. Rows of the left side stay in the first cache, past which weights are
// loaded. Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <immintrin.h>

#include <algorithm>

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
      : p_(product), panel_bytes_(product.steps * step_weights), ahead_lines_(lines_ahead(product)) {}

  void run() {
    const int64_t at_once = std::max<int64_t>(2, p_.panels_at_once / 2 * 2);
    for (int64_t panel = 0; panel < p_.panels; panel += at_once) {
      const int64_t panel_end = std::min(panel + at_once, p_.panels);
      ahead_ = p_.weights + panel_end * panel_bytes_;
      fetches_ = panel_end < p_.panels ? ahead_lines_ : 0;
      for (int64_t tile = 0; tile < p_.tile_count; ++tile) {
        for (int64_t own = panel; own < panel_end; own += 2) multiply_pair(tile, own);
      }
    }
    store_sums(sums());
    take_turns();
    finish(0, units());
  }

 private:
  // Two panels whose sums become codes.
  struct Sums {
    const CodeRows* rows = nullptr;
    int64_t column = 0;
    int half = 0;  // the panel that is in the registers, or was there last

    // Whether there is no second panel.
    bool is_alone() const { return half == 0; }
  };

  // How many lines of the weights of the next panels are fetched in a step: so many that all are while the rows pass
  // by.
  static int64_t lines_ahead(const CodeProduct& product) {
    constexpr int64_t many_tiles = 16, step_lines = step_weights / 64;
    return product.tile_count > many_tiles ? 0 : (step_lines + product.tile_count - 1) / product.tile_count;
  }

  void multiply_pair(int64_t tile, int64_t panel) {
    const CodeRows& of = p_.tiles[tile];
    const bool has_second = panel + 1 < p_.panels, is_first = !now_.rows;
    int32_t* before = is_first ? nullptr : sums();
    take_turns();
    const int all = is_first ? 0 : units(), in_first = has_second ? all / 2 : all;
    now_ = {&of, panel * columns, 0};
    multiply(of, panel, before, 0, in_first);
    if (!has_second) return;
    before = sums();
    now_.half = 1;
    multiply(of, panel + 1, before, in_first, all);
  }

  // The pair that was multiplied is to be finished while the next one's sums go to the other place.
  void take_turns() {
    finished_ = now_;
    turn_ ^= 1;
  }

  // Codes that are made at once: those of a row, or of two if the panel is alone.
  int units() const { return finished_.is_alone() ? rows / 2 : rows; }

  // Where those go that are in the registers.
  int32_t* sums() { return sums_[turn_][0] + now_.half * columns; }

  static constexpr int64_t sums_stride = pair * sizeof(int32_t);

  static void store_sums(int32_t* to) {
    _tile_stored(0, to, sums_stride);
    _tile_stored(1, to + 16, sums_stride);
    _tile_stored(2, to + 16 * pair, sums_stride);
    _tile_stored(3, to + 16 * pair + 16, sums_stride);
  }

  // The first step of a tile; sums of the one before, if there are, leave the registers between its products.
  static void begin(const CodeRows& of, const uint8_t* weights, int32_t* before) {
    const auto stride = static_cast<size_t>(of.stride);
    const uint8_t* a = of.first + of.offsets[0];
    _tile_loadd(4, a, stride);
    _tile_stream_loadd(6, weights, 4 * columns);
    if (before) _tile_stored(0, before, sums_stride);
    _tile_zero(0);
    _tile_dpbusd(0, 4, 6);
    _tile_stream_loadd(7, weights + 64, 4 * columns);
    if (before) _tile_stored(1, before + 16, sums_stride);
    _tile_zero(1);
    _tile_dpbusd(1, 4, 7);
    _tile_loadd(5, a + 16 * of.stride, stride);
    if (before) _tile_stored(2, before + 16 * pair, sums_stride);
    _tile_zero(2);
    _tile_dpbusd(2, 5, 6);
    if (before) _tile_stored(3, before + 16 * pair + 16, sums_stride);
    _tile_zero(3);
    _tile_dpbusd(3, 5, 7);
  }

  // A tile, while units from `unit` to `unit_end` of the pair before become codes: so many in each step that all do.
  void multiply(const CodeRows& of, int64_t panel, int32_t* before, int unit, int unit_end) {
    const uint8_t* weights = p_.weights + panel * panel_bytes_;
    begin(of, weights, before);
    const int64_t count = unit_end - unit, left = p_.steps - 1;
    const int64_t per_step = count == 0 ? 0 : count <= left ? 1 : count <= 2 * left ? 2 : 4;
    const int64_t end = per_step == 0 ? 1 : 1 + std::min(left, count / per_step);
    finished_.is_alone() ? some_steps<true>(per_step, of, weights, end, unit)
                         : some_steps<false>(per_step, of, weights, end, unit);
    steps<0, false>(of, weights, end, p_.steps, unit);
    finish(static_cast<int>(unit + per_step * (end - 1)), unit_end);
  }

  template <bool IsAlone>
  void some_steps(int64_t per_step, const CodeRows& of, const uint8_t* weights, int64_t end, int unit) {
    if (per_step == 1) steps<1, IsAlone>(of, weights, 1, end, unit);
    if (per_step == 2) steps<2, IsAlone>(of, weights, 1, end, unit);
    if (per_step == 4) steps<4, IsAlone>(of, weights, 1, end, unit);
  }

  template <int Units, bool IsAlone>
  [[gnu::noinline]] void steps(const CodeRows& of, const uint8_t* weights, int64_t step, int64_t end, int unit) {
    const auto stride = static_cast<size_t>(of.stride);
    const int64_t second = 16 * of.stride, fetches = fetches_;
    const int64_t* offsets = of.offsets;
    const uint8_t *first = of.first, *b = weights + step * step_weights, *ahead = ahead_;
    Unit<IsAlone> next(*this, unit);
    for (; step < end; ++step, b += step_weights) {
      const uint8_t* a = first + offsets[step];
      _tile_loadd(4, a, stride);
      _tile_stream_loadd(6, b, 4 * columns);
      _tile_dpbusd(0, 4, 6);
      keep_order();
      if constexpr (Units == 4) next.finish();
      _tile_stream_loadd(7, b + 64, 4 * columns);
      _tile_dpbusd(1, 4, 7);
      keep_order();
      if constexpr (Units >= 2) next.finish();
      _tile_loadd(5, a + second, stride);
      _tile_dpbusd(2, 5, 6);
      keep_order();
      if constexpr (Units == 4) next.finish();
      _tile_dpbusd(3, 5, 7);
      keep_order();
      if constexpr (Units >= 1) next.finish();
      for (int64_t line = 0; line < fetches; ++line, ahead += 64) _mm_prefetch(ahead, _MM_HINT_T1);
    }
    ahead_ = ahead;
  }

  // Makes codes of one unit after the other, with all that it needs in registers.
  template <bool IsAlone>
  class Unit {
    static constexpr int unit_rows = IsAlone ? 2 : 1;

   public:
    [[gnu::always_inline]] Unit(const AmxCodeProduct& all, int unit)
        : sums_(all.sums_[all.turn_ ^ 1][unit_rows * unit]),
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
      const __m512i a = _mm512_packs_epi32(whole(sums_, first_), whole(sums_ + 16, second_));
      const int32_t* rest = sums_ + (IsAlone ? pair : columns);
      const __m512i b = _mm512_packs_epi32(whole(rest, third_), whole(rest + 16, fourth_));
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
      sums_ += unit_rows * pair;
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

    const int32_t* sums_;
    uint8_t* const* to_;
    int64_t column_;
    __mmask64 some_;
    __m512i zero_, flip_;
    __m512 high_;
    Quarter first_, second_, third_, fourth_;
  };

  void finish(int unit, int unit_end) {
    if (unit >= unit_end) return;
    finished_.is_alone() ? finish_units<true>(unit, unit_end) : finish_units<false>(unit, unit_end);
  }
  template <bool IsAlone>
  void finish_units(int unit, int unit_end) {
    Unit<IsAlone> next(*this, unit);
    for (; unit < unit_end; ++unit) next.finish();
  }

  const CodeProduct& p_;
  const int64_t panel_bytes_, ahead_lines_;
  int64_t fetches_ = 0;
  const uint8_t* ahead_ = nullptr;
  Sums now_, finished_;
  int turn_ = 0;
  alignas(64) int32_t sums_[2][rows][pair];
};

inline void multiply_codes(const CodeProduct& product) {
  product.is_limited ? AmxCodeProduct<true>(product).run() : AmxCodeProduct<false>(product).run();
}

}  // namespace
}  // namespace tenon::kernels
