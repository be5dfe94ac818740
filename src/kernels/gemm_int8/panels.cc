#include "kernels/gemm_int8/panels.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/gemm/multiplication.h"
#include "kernels/gemm_int8/transpose_bytes.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

constexpr int64_t bytes_per_task = 32 << 10;

constexpr uint64_t repeated(uint8_t byte) { return 0x0101010101010101u * byte; }

// Groups are copied as a word, or as a cache line.
template <int Group>
void copy_group(const uint8_t* from, uint64_t mask, uint8_t* to) {
  using Line [[gnu::vector_size(64)]] = uint64_t;
  std::conditional_t<(Group > 8), Line, uint64_t> word = {};
  std::memcpy(&word, from, Group);
  word ^= mask;
  std::memcpy(to, &word, Group);
}

// Four lanes whose steps of k are contiguous and that start ld apart, as far as 16 steps at a time go. Returns how many
// steps that are.
int64_t pack_four_rows(const uint8_t* from, int64_t ld, int64_t k, int width, uint8_t flip, uint8_t* to) {
  const uint8_t* const lanes[4] = {from, from + ld, from + 2 * ld, from + 3 * ld};
  int64_t p = 0;
  for (; p + 16 <= k; p += 16) interleave_by_fours(lanes, p, flip, to + p * width, 4 * width);
  return p;
}

// The same for two lanes and groups of 8 steps.
int64_t pack_two_rows(const uint8_t* from, int64_t ld, int64_t k, int width, uint8_t flip, uint8_t* to) {
  using Groups [[gnu::vector_size(16)]] = uint64_t;
  int64_t p = 0;
  for (; p + 16 <= k; p += 16) {
    Groups even, odd;
    std::memcpy(&even, from + p, 16);
    std::memcpy(&odd, from + ld + p, 16);
    even ^= repeated(flip);
    odd ^= repeated(flip);
    const Groups first = __builtin_shufflevector(even, odd, 0, 2), second = __builtin_shufflevector(even, odd, 1, 3);
    std::memcpy(to + p * width, &first, 16);
    std::memcpy(to + (p + 8) * width, &second, 16);
  }
  return p;
}

// Lanes whose steps of k are contiguous and that start ld apart.
template <int Group>
void pack_rows(const uint8_t* from, int64_t ld, int64_t lanes, const BytePanels& panels, uint8_t flip, uint8_t* to) {
  const int width = panels.width();
  const int64_t k = panels.k, groups = panels.steps() / Group;
  int64_t packed = 0;  // steps, of the lanes in hand
  if constexpr (Group > 8) {
    packed = k / Group * Group;
    for (int64_t p = 0; p < packed; p += Group) {
      for (int64_t l = 0; l < lanes; ++l)
        copy_group<Group>(from + l * ld + p, repeated(flip), to + p * width + l * Group);
    }
  }
  for (int l = 0; l < width; ++l, from += ld, to += Group) {
    if (Group == 8 && l % 2 == 0) packed = l + 2 <= lanes ? pack_two_rows(from, ld, k, width, flip, to) : 0;
    if (Group == 4 && l % 4 == 0) packed = l + 4 <= lanes ? pack_four_rows(from, ld, k, width, flip, to) : 0;
    const int64_t whole = l < lanes ? k / Group : 0, rest = l < lanes ? k % Group : 0;
    for (int64_t q = packed / Group; q < whole; ++q)
      copy_group<Group>(from + q * Group, repeated(flip), to + q * width * Group);
    for (int64_t q = whole; q < groups; ++q) std::memset(to + q * width * Group, 0, Group);
    for (int64_t i = 0; i < rest; ++i)
      to[whole * width * Group + i] = static_cast<uint8_t>(from[whole * Group + i] ^ flip);
  }
}

// Four rows of 8 bytes side by side: byte j of each, then byte j + 1 of each.
inline void interleave_rows(const uint8_t* from, int64_t ld, uint8_t flip, uint8_t* to) {
  using Row [[gnu::vector_size(8)]] = uint8_t;
  using Rows [[gnu::vector_size(16)]] = uint8_t;
  using Pairs [[gnu::vector_size(16)]] = uint16_t;
  Row row[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&row[i], from + i * ld, 8);
  const auto zipped = [&](Row a, Row b) {
    return (Pairs)(__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15) ^
                   (Rows{} + flip));
  };
  const Pairs first = zipped(row[0], row[1]), second = zipped(row[2], row[3]);
  const Pairs low = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
  const Pairs high = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
  std::memcpy(to, &low, 16);
  std::memcpy(to + 16, &high, 16);
}

// Eight rows of 8 bytes, transposed.
inline void transpose_rows(const uint8_t* from, int64_t ld, uint8_t flip, uint8_t* to) {
  using Row [[gnu::vector_size(8)]] = uint8_t;
  using Rows [[gnu::vector_size(16)]] = uint8_t;
  Row row[8];
  for (int i = 0; i < 8; ++i) std::memcpy(&row[i], from + i * ld, 8);
  Rows halves[4], quarters[4];
  for (int i = 0; i < 4; ++i) {
    halves[i] = __builtin_shufflevector(row[i], row[i + 4], 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15) ^
                (Rows{} + flip);
  }
  const auto zip_low = [](Rows a, Rows b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  };
  const auto zip_high = [](Rows a, Rows b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  };
  for (int i = 0; i < 2; ++i) {
    quarters[i] = zip_low(halves[i], halves[i + 2]);
    quarters[i + 2] = zip_high(halves[i], halves[i + 2]);
  }
  for (int i = 0; i < 2; ++i) {
    const Rows low = zip_low(quarters[2 * i], quarters[2 * i + 1]),
               high = zip_high(quarters[2 * i], quarters[2 * i + 1]);
    std::memcpy(to + 32 * i, &low, 16);
    std::memcpy(to + 32 * i + 16, &high, 16);
  }
}

// Lanes that are contiguous, with steps of k that start ld apart: transposed in squares of 8 by 8.
template <int Group>
void pack_columns(const uint8_t* from, int64_t ld, int64_t lanes, const BytePanels& panels, uint8_t flip, uint8_t* to) {
  constexpr int piece = std::min(Group, 8);
  const int width = panels.width();
  int64_t p = 0;
  const bool in_eights = Group == 4 && lanes == width && width % 8 == 0;
  const auto pack_whole = panels.kernels->pack_whole_columns;
  if (in_eights && pack_whole && panels.side == GemmSide::right) {
    p = panels.k / 8 * 8;
    pack_whole(from, ld, p / 4, flip, to);
  }
  for (; in_eights && p + 8 <= panels.k; p += 8) {
    for (int64_t step = p; step < p + 8; step += 4) {
      for (int64_t l = 0; l < width; l += 8) interleave_rows(from + step * ld + l, ld, flip, to + step * width + 4 * l);
    }
  }
  for (; Group == 8 && lanes == width && width % 8 == 0 && p + 8 <= panels.k; p += 8) {
    for (int64_t l = 0; l < width; l += 8) transpose_rows(from + p * ld + l, ld, flip, to + p * width + 8 * l);
  }
  for (; p < panels.steps(); p += 8) {
    const int64_t steps = std::clamp<int64_t>(panels.k - p, 0, 8), stored = std::min<int64_t>(8, panels.steps() - p);
    for (int64_t l = 0; l < width; l += 8) {
      const int64_t present = std::clamp<int64_t>(lanes - l, 0, 8);
      uint64_t words[8] = {};
      for (int64_t i = 0; i < steps; ++i) {
        const uint8_t* row = from + (p + i) * ld + l;
        if (present == 8) {
          std::memcpy(&words[i], row, 8);
          words[i] ^= repeated(flip);
        } else {
          uint8_t bytes[8] = {};
          for (int64_t j = 0; j < present; ++j) bytes[j] = static_cast<uint8_t>(row[j] ^ flip);
          std::memcpy(&words[i], bytes, 8);
        }
      }
      transpose_bytes(words);
      const int64_t lanes_here = std::min<int64_t>(8, width - l);
      for (int64_t j = 0; j < lanes_here; ++j) {
        for (int64_t i = 0; i < stored; i += piece) {
          std::memcpy(to + ((p + i) / Group * width + l + j) * Group + (p + i) % Group,
                      reinterpret_cast<const uint8_t*>(&words[j]) + i, piece);
        }
      }
    }
  }
}

template <int Group>
void pack_panel(const BytePanels& to, const ByteMatrix& from, int64_t panel) {
  const auto* bytes = static_cast<const uint8_t*>(from.data);
  const int64_t lane = panel * to.width(), lanes = std::min<int64_t>(to.width(), to.lanes - lane);
  const uint8_t flip = to.flip(from.is_signed);
  uint8_t* codes = to.codes + panel * to.panel_bytes();
  if ((to.side == GemmSide::left) != from.transposed) {
    pack_rows<Group>(bytes + lane * from.ld, from.ld, lanes, to, flip, codes);
  } else {
    pack_columns<Group>(bytes + lane, from.ld, lanes, to, flip, codes);
  }
}

void share(ThreadPool* pool, int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (pool) {
    pool->parallel_for(count, grain, body);
  } else if (count > 0) {
    body(0, count);
  }
}

int64_t panels_per_task(const BytePanels& panels) { return 1 + bytes_per_task / (panels.panel_bytes() + 1); }

}  // namespace

size_t BytePanels::bytes() const {
  const auto codes_bytes = static_cast<size_t>(panels() * panel_bytes() + 63) / 64 * 64;
  return codes_bytes + 2 * sizeof(int32_t) * static_cast<size_t>(panels() * width());
}

void BytePanels::place(void* memory) {
  codes = static_cast<uint8_t*>(memory);
  zeros = reinterpret_cast<int32_t*>(codes + (panels() * panel_bytes() + 63) / 64 * 64);
  sums = zeros + panels() * width();
}

void pack_panels(ThreadPool* pool, const BytePanels& to, ByteMatrix from, ByteZeroPoints zeros, bool with_sums) {
  const int64_t first = to.unpacked ? to.lanes / to.width() : 0;
  share(pool, to.panels() - first, panels_per_task(to), [&](int64_t begin, int64_t end) {
    for (int64_t panel = first + begin; panel < first + end; ++panel) {
      switch (to.group()) {
        case 1:
          pack_panel<1>(to, from, panel);
          break;
        case 2:
          pack_panel<2>(to, from, panel);
          break;
        case 4:
          pack_panel<4>(to, from, panel);
          break;
        case 8:
          pack_panel<8>(to, from, panel);
          break;
        default:
          pack_panel<64>(to, from, panel);
          break;
      }
    }
  });
  const int32_t shift = to.shift(from.is_signed);
  for (int64_t i = 0; i < to.panels() * to.width(); ++i) {
    to.zeros[i] = shift + (zeros.data && i < to.lanes ? zeros.data[zeros.by_lane ? i : 0] : 0);
  }
  if (with_sums) sum_panels(pool, to);
}

// The micro-kernels add up codes too: their sums are products with ones. A panel that can be either side's is the right
// one, of one row of ones.
void sum_panels(ThreadPool* pool, const BytePanels& panels) {
  static constexpr int32_t zero[most_int8_tile_columns] = {};
  const Int8Kernels& kernels = *panels.kernels;
  const bool left = panels.side == GemmSide::left, times_row = !left || kernels.is_square();
  const int64_t groups = panels.steps() / kernels.k_group;
  const auto ones_bytes = static_cast<size_t>(panels.steps() * (times_row ? kernels.tile_rows : kernels.tile_columns));
  const Scratch ones(ones_bytes + 1);
  std::memset(ones.as<uint8_t>(), 1, ones_bytes);
  share(pool, panels.panels(), panels_per_task(panels), [&](int64_t begin, int64_t end) {
    const Multiplication multiplication(kernels);
    int32_t tile[most_int8_tile_rows * most_int8_tile_columns];
    for (int64_t panel = begin; panel < end; ++panel) {
      const uint8_t *codes = panels.codes + panel * panels.panel_bytes(), *row = ones.as<uint8_t>();
      int32_t* sums = panels.sums + panel * panels.width();
      const int32_t* zeros = panels.zeros + panel * panels.width();
      const bool by_row = times_row && panels.width() > 1;
      const auto multiply = by_row || panels.lanes == 1 ? kernels.one_row : kernels.all_rows;
      multiply(groups, by_row ? row : codes, by_row ? codes : row, zero, zero, tile, kernels.tile_columns);
      const auto k = static_cast<uint32_t>(panels.k);
      for (int i = 0; i < panels.width(); ++i) {
        const int32_t sum = tile[by_row ? i : i * kernels.tile_columns];
        sums[i] = left ? sum : static_cast<int32_t>(static_cast<uint32_t>(sum) - k * static_cast<uint32_t>(zeros[i]));
      }
    }
  });
}

void sum_magnitudes(ThreadPool* pool, const BytePanels& panels, int32_t* magnitudes) {
  share(pool, panels.panels(), panels_per_task(panels), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      panels.kernels->magnitudes(panels.steps() / panels.group(), panels.codes + panel * panels.panel_bytes(),
                                 panels.zeros + panel * panels.width(), magnitudes + panel * panels.width());
    }
  });
}

}  // namespace tenon::kernels
