#include "kernels/random/random.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <random>
#include <span>

#include "kernels/math/math.h"
#include "kernels/random/philox_rounds.h"

namespace tenon::kernels {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, PhiloxKey key) {
  uint32_t words[4][1] = {{counter[0]}, {counter[1]}, {counter[2]}, {counter[3]}};
  philox_rounds(words, key);
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

namespace {

void fill_words(PhiloxKey key, int64_t first_block, std::span<uint32_t> words) {
  philox_kernels().words(key, static_cast<uint64_t>(first_block), std::ssize(words) / 4, words.data());
}

// Numbers first … first + n - 1, where number i is make(words) of `each` words, the first of which is number i * each.
template <int each, typename T, typename Make>
void make_of_words(PhiloxKey key, int64_t first, T* y, int64_t n, const Make& make) {
  constexpr int64_t of_block = 4 / each, group = philox_group * of_block, most = 8 * group;
  uint32_t words[most * each];
  for (int64_t i = 0; i < n;) {
    const int64_t block = (first + i) / of_block, skipped = (first + i) % of_block;
    const int64_t count = std::min(most - skipped, n - i), groups = (skipped + count + group - 1) / group;
    fill_words(key, block, std::span(words).first(static_cast<size_t>(groups * group * each)));
    for (int64_t k = 0; k < count; ++k) y[i + k] = make(words + (skipped + k) * each);
    i += count;
  }
}

double fraction(const uint32_t* words) {
  return static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
}

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

}  // namespace

void RandomNumbers::uniform(int64_t first, float* y, int64_t n) const {
  make_of_words<1>(key_, first, y, n, [](const uint32_t* word) {
    return static_cast<float>(static_cast<int32_t>(*word >> 8)) * 0x1p-24f;
  });
}

void RandomNumbers::uniform(int64_t first, double* y, int64_t n) const {
  make_of_words<2>(key_, first, y, n, fraction);
}

// Two numbers u and v in (0, 1] give sqrt(-2 log u) * cos(2 pi v) and the same with sin. Groups are large for the sake
// of the vector functions.
void RandomNumbers::normal(int64_t first, float* y, int64_t n) const {
  constexpr int pairs = 64, blocks = pairs / 2;
  static_assert(blocks % philox_group == 0);
  read_groups<2 * pairs>(first, y, n, [&](int64_t group, float* numbers) {
    uint32_t words[4 * blocks];
    fill_words(key_, group * blocks, words);
    float radius[pairs], angle[pairs], cosine[pairs], sine[pairs];
    for (int i = 0; i < pairs; ++i) {
      radius[i] = (static_cast<float>(words[2 * i]) + 0.5f) * 0x1p-32f;
      angle[i] = static_cast<float>(words[2 * i + 1] >> 8) * static_cast<float>(2 * std::numbers::pi * 0x1p-24);
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
  constexpr int blocks = philox_group;
  read_groups<2 * blocks>(first, y, n, [&](int64_t group, double* numbers) {
    uint32_t words[4 * blocks];
    fill_words(key_, group * blocks, words);
    for (int i = 0; i < blocks; ++i) {
      const double length = std::sqrt(-2 * std::log(1 - fraction(words + 4 * i)));
      const double angle = 2 * std::numbers::pi * fraction(words + 4 * i + 2);
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
