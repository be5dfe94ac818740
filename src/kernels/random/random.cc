#include "kernels/random/random.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <random>

#include "kernels/math/math.h"

namespace tenon::kernels {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::array<uint32_t, 4> RandomNumbers::block(int64_t i) const {
  const auto number = static_cast<uint64_t>(i);
  return philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0}, key_);
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
  read_groups<4>(first, y, n, [&](int64_t group, float* numbers) {
    const auto bits = block(group);
    for (int lane = 0; lane < 4; ++lane) numbers[lane] = static_cast<float>(bits[lane] >> 8) * 0x1p-24f;
  });
}

void RandomNumbers::uniform(int64_t first, double* y, int64_t n) const {
  read_groups<2>(first, y, n, [&](int64_t group, double* numbers) {
    const auto bits = block(group);
    numbers[0] = fraction(bits[0], bits[1]);
    numbers[1] = fraction(bits[2], bits[3]);
  });
}

// Two numbers u and v in (0, 1] give sqrt(-2 log u) * cos(2 pi v) and the same with sin. Groups are large for the sake
// of the vector functions.
void RandomNumbers::normal(int64_t first, float* y, int64_t n) const {
  constexpr int blocks = 32, pairs = 2 * blocks;
  read_groups<2 * pairs>(first, y, n, [&](int64_t group, float* numbers) {
    float radius[pairs], angle[pairs], cosine[pairs], sine[pairs];
    for (int i = 0; i < blocks; ++i) {
      const auto bits = block(group * blocks + i);
      for (int half = 0; half < 2; ++half) {
        radius[2 * i + half] = (static_cast<float>(bits[2 * half]) + 0.5f) * 0x1p-32f;
        angle[2 * i + half] =
            static_cast<float>(bits[2 * half + 1] >> 8) * static_cast<float>(2 * std::numbers::pi * 0x1p-24);
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
  read_groups<2>(first, y, n, [&](int64_t group, double* numbers) {
    const auto bits = block(group);
    const double length = std::sqrt(-2 * std::log(1 - fraction(bits[0], bits[1])));
    const double angle = 2 * std::numbers::pi * fraction(bits[2], bits[3]);
    numbers[0] = length * std::cos(angle);
    numbers[1] = length * std::sin(angle);
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
