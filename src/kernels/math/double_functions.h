// Elementary functions of vectors of doubles, for instruction sets with fused multiply-adds.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// Each function has vector(x), within a unit or two in the last place where |x| <= limit, and exact(x) for all x.
// Polynomials are near-minimax fits on the reduced ranges named beside them.
template <class Arch>
struct DoubleFunctions {
  using D = typename Arch::D;  // doubles
  using L = typename Arch::L;  // integers in lanes of the same size
  static constexpr int width = sizeof(D) / sizeof(double);

  static D fma(D a, D b, D c) { return Arch::fma(a, b, c); }
  static D set(double x) { return x - D{}; }

  // c0 + c1 * x + c2 * x^2 + …, by pairs, of an even number of coefficients.
  template <size_t count>
  static D polynomial(D x, const double (&c)[count]) {
    static_assert(count % 2 == 0);
    const D square = x * x;
    D result = fma(x, set(c[count - 1]), set(c[count - 2]));
#pragma GCC unroll 8
    for (size_t i = count - 2; i > 0; i -= 2) result = fma(result, square, fma(x, set(c[i - 1]), set(c[i - 2])));
    return result;
  }

  // Added to a number below 2^51, it leaves a whole number in the last bits.
  static constexpr double shift = 6755399441055744.0;

  struct Exp {
    static constexpr double limit = 708;
    static double exact(double x) { return std::exp(x); }
    static D vector(D x) {
      // x = n * log(2) + r with |r| <= log(2) / 2.
      const D shifted = fma(x, set(1.4426950408889634), set(shift)), n = shifted - shift;
      D r = fma(n, set(-0.6931471805599453), x);
      r = fma(n, set(-2.3190468138462996e-17), r);
      // (exp(r) - 1 - r) / r^2
      static constexpr double coefficients[] = {0.5000000000000011,     0.16666666666666413,   0.041666666666529885,
                                                0.008333333333493224,   0.0013888888943707292, 0.0001984126950983446,
                                                2.4801493013253447e-05, 2.755758295772085e-06, 2.7630280792822336e-07,
                                                2.500130183680505e-08};
      const D e = fma(r * r, polynomial(r, coefficients), r) + 1.0;
      return (D)((L)e + ((L)shifted << 52));
    }
  };

  // log(x) for normal x above 0, within 2e-12 of it.
  static D log(D x) {
    using U [[gnu::vector_size(sizeof(D))]] = uint64_t;
    // Subtracting the bits of sqrt(1/2) makes the exponent field count from there; 1024 more keeps it above 0.
    constexpr uint64_t root = 0x3fe6a09e667f3bcd, mantissa = (uint64_t{1} << 52) - 1;
    const U shifted = (U)x - root + (uint64_t{1024} << 52);
    // Behind the bits of 2^52, a whole number is the last bits.
    const D exponent = (D)(shifted >> 52 | 0x4330000000000000) - (0x1p52 + 1024);
    const D f = (D)((shifted & mantissa) + root);
    const D s = (f - 1.0) / (f + 1.0), square = s * s;
    // (log(f) - 2 * s) / s^3 by its series, on |s| <= 0.172
    static constexpr double coefficients[] = {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13};
    return fma(exponent, set(0.6931471805599453), fma(s * square, polynomial(square, coefficients), s + s));
  }

  // The sine of x - turns * pi, of which the sign changes where the last bit of `half_turns` is 1.
  static D sine(D x, D turns, D half_turns) {
    D r = fma(turns, set(-3.141592653589793), x);
    r = fma(turns, set(-1.2246467991473532e-16), r);
    r = fma(turns, set(2.9947698097183397e-33), r);
    const D square = r * r;
    // (sin(r) - r) / r^3 on |r| <= pi / 2
    static constexpr double coefficients[] = {-0.16666666666666666,   0.008333333333333194,   -0.00019841269841209145,
                                              2.755731921112428e-06,  -2.505210687158089e-08, 1.6058939642992198e-10,
                                              -7.642989814824985e-13, 2.7211569540552187e-15};
    const D result = fma(r * square, polynomial(square, coefficients), r);
    return (D)((L)result ^ ((L)half_turns << 63));
  }

  static constexpr double largest_reduced_angle = 1 << 20;
  static constexpr double inverse_pi = 0.3183098861837907;

  struct Sin {
    static constexpr double limit = largest_reduced_angle;
    static double exact(double x) { return std::sin(x); }
    static D vector(D x) {
      const D shifted = fma(x, set(inverse_pi), set(shift));
      return sine(x, shifted - shift, shifted);
    }
  };

  // sin(x + pi / 2)
  struct Cos {
    static constexpr double limit = largest_reduced_angle;
    static double exact(double x) { return std::cos(x); }
    static D vector(D x) {
      const D shifted = fma(x, set(inverse_pi), set(0.5)) + shift;
      return sine(x, (shifted - shift) - 0.5, shifted);
    }
  };

  struct Tan {
    static D vector(D x) { return Sin::vector(x) / Cos::vector(x); }
  };
};

}  // namespace tenon::kernels
