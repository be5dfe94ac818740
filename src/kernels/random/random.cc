#include "kernels/random/random.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <random>

#include "kernels/math/math.h"

namespace tenon::kernels {

namespace {

// Ten rounds for each lane of counters, whose four words are the rows.
template <int lanes>
void philox_rounds(uint32_t (&counter)[4][lanes], std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < lanes; ++i) {
      const uint64_t a = uint64_t{0xD2511F53} * counter[0][i], b = uint64_t{0xCD9E8D57} * counter[2][i];
      counter[0][i] = static_cast<uint32_t>(b >> 32) ^ counter[1][i] ^ key[0];
      counter[1][i] = static_cast<uint32_t>(b);
      counter[2][i] = static_cast<uint32_t>(a >> 32) ^ counter[3][i] ^ key[1];
      counter[3][i] = static_cast<uint32_t>(a);
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  uint32_t words[4][1] = {{counter[0]}, {counter[1]}, {counter[2]}, {counter[3]}};
  philox_rounds(words, key);
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

RandomNumbers::Blocks RandomNumbers::blocks(int64_t first) const {
  Blocks result = {};
  for (int i = 0; i < together; ++i) {
    const auto number = static_cast<uint64_t>(first + i);
    result.words[0][i] = static_cast<uint32_t>(number);
    result.words[1][i] = static_cast<uint32_t>(number >> 32);
  }
  philox_rounds(result.words, key_);
  return result;
}

namespace {

// Gives the caller whole groups of `size` numbers, in which the range [first, first + n) may start and end anywhere:
// make(group, numbers) fills one.
template <int size, typename T, typename Make>
void read_groups(int64_t first, T* y, int64_t n, const Make& make) {
  for (int64_t i = first; i < first + n;) {
    T numbers[size];
    make(i / size, numbers);
    const int64_t begin = i % size, count = std::min(size - begin, first + n - i);
    std::copy_n(numbers + begin, count, y + (i - first));
    i += count;
  }
}

double fraction(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace

void RandomNumbers::uniform(int64_t first, float* y, int64_t n) const {
  read_groups<4 * together>(first, y, n, [&](int64_t group, float* numbers) {
    const Blocks bits = blocks(group * together);
    for (int i = 0; i < together; ++i) {
      for (int lane = 0; lane < 4; ++lane)
        numbers[4 * i + lane] = static_cast<float>(static_cast<int32_t>(bits.words[lane][i] >> 8)) * 0x1p-24f;
    }
  });
}

void RandomNumbers::uniform(int64_t first, double* y, int64_t n) const {
  read_groups<2 * together>(first, y, n, [&](int64_t group, double* numbers) {
    const Blocks bits = blocks(group * together);
    for (int i = 0; i < together; ++i) {
      numbers[2 * i] = fraction(bits.words[0][i], bits.words[1][i]);
      numbers[2 * i + 1] = fraction(bits.words[2][i], bits.words[3][i]);
    }
  });
}

// Two numbers u and v in (0, 1] give sqrt(-2 log u) * cos(2 pi v) and the same with sin. Groups are large for the sake
// of the vector functions.
void RandomNumbers::normal(int64_t first, float* y, int64_t n) const {
  constexpr int count = 4 * together, pairs = 2 * count;
  read_groups<2 * pairs>(first, y, n, [&](int64_t group, float* numbers) {
    float radius[pairs], angle[pairs], cosine[pairs], sine[pairs];
    for (int begin = 0; begin < count; begin += together) {
      const Blocks bits = blocks(group * count + begin);
      for (int i = 0; i < together; ++i) {
        for (int half = 0; half < 2; ++half) {
          const int at = 2 * (begin + i) + half;
          radius[at] = (static_cast<float>(bits.words[2 * half][i]) + 0.5f) * 0x1p-32f;
          angle[at] =
              static_cast<float>(bits.words[2 * half + 1][i] >> 8) * static_cast<float>(2 * std::numbers::pi * 0x1p-24);
        }
      }
    }
    f32_log(radius, radius, pairs);
    f32_cos(angle, cosine, pairs);
    f32_sin(angle, sine, pairs);
    for (int i = 0; i < pairs; ++i) {
      const float length = std::sqrt(-2 * radius[i]);
      numbers[2 * i] = length * cosine[i];
      numbers[2 * i + 1] = length * sine[i];
    }
  });
}

void RandomNumbers::normal(int64_t first, double* y, int64_t n) const {
  read_groups<2 * together>(first, y, n, [&](int64_t group, double* numbers) {
    const Blocks bits = blocks(group * together);
    for (int i = 0; i < together; ++i) {
      const double length = std::sqrt(-2 * std::log(1 - fraction(bits.words[0][i], bits.words[1][i])));
      const double angle = 2 * std::numbers::pi * fraction(bits.words[2][i], bits.words[3][i]);
      numbers[2 * i] = length * std::cos(angle);
      numbers[2 * i + 1] = length * std::sin(angle);
    }
  });
}

uint64_t fresh_seed() {
  static std::atomic<uint64_t> next = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tenon::kernels
