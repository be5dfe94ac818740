#include <limits>
#include <string>

#include "ops/binary/loops.h"

namespace tenon::ops {
namespace {

struct Equal {
  static bool call(const auto& a, const auto& b) { return a == b; }
};
struct Less {
  static bool call(const auto& a, const auto& b) { return a < b; }
};
struct LessOrEqual {
  static bool call(const auto& a, const auto& b) { return a <= b; }
};
struct Greater {
  static bool call(const auto& a, const auto& b) { return a > b; }
};
struct GreaterOrEqual {
  static bool call(const auto& a, const auto& b) { return a >= b; }
};
struct BitAnd {
  template <typename T>
  static T call(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  static T call(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  static T call(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Shifts by a negative distance, or by all bits and more, leave only copies of what is shifted in.
template <typename T>
bool shifts_all_out(T distance) {
  return distance < 0 || static_cast<uint64_t>(distance) >= 8 * sizeof(T);
}

struct ShiftLeft {
  template <typename T>
  static T call(T x, T distance) {
    // Computed in any case, so that loops vectorise.
    using Bits = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
    const Bits moved = static_cast<Bits>(x) << (static_cast<Bits>(distance) & (8 * sizeof(Bits) - 1));
    return shifts_all_out(distance) ? T(0) : static_cast<T>(moved);
  }
};
struct ShiftRight {
  template <typename T>
  static T call(T x, T distance) {
    constexpr int most = 8 * sizeof(T) - 1;
    const T moved = static_cast<T>(x >> (static_cast<int>(distance) & most));
    const T copies = x < 0 ? static_cast<T>(-1) : T(0);
    return shifts_all_out(distance) ? copies : moved;
  }
};

template <typename F>
constexpr BinaryTable ordering_loops() {
  return binary_loops<F, float, double, float16, bfloat16, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t,
                      int32_t, int64_t>();
}

template <typename F>
constexpr BinaryTable bit_loops() {
  return shared_between_signs(binary_loops<F, uint8_t, uint16_t, uint32_t, uint64_t>());
}

template <typename F>
constexpr BinaryTable shift_loops() {
  return binary_loops<F, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>();
}

}  // namespace

constexpr BinaryTable equal_loops = shared_between_signs(
    binary_loops<Equal, float, double, float16, bfloat16, uint8_t, uint16_t, uint32_t, uint64_t, bool, std::string>());
constexpr BinaryTable less_loops = ordering_loops<Less>();
constexpr BinaryTable less_or_equal_loops = ordering_loops<LessOrEqual>();
constexpr BinaryTable greater_loops = ordering_loops<Greater>();
constexpr BinaryTable greater_or_equal_loops = ordering_loops<GreaterOrEqual>();
constexpr BinaryTable and_loops = binary_loops<BitAnd, bool>();
constexpr BinaryTable or_loops = binary_loops<BitOr, bool>();
constexpr BinaryTable xor_loops = binary_loops<BitXor, bool>();
constexpr BinaryTable bitwise_and_loops = bit_loops<BitAnd>();
constexpr BinaryTable bitwise_or_loops = bit_loops<BitOr>();
constexpr BinaryTable bitwise_xor_loops = bit_loops<BitXor>();
constexpr BinaryTable shift_left_loops = shift_loops<ShiftLeft>();
constexpr BinaryTable shift_right_loops = shift_loops<ShiftRight>();

}  // namespace tenon::ops
