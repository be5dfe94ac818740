// Elementary functions of float vectors, written once for every instruction set.
#pragma once

#include <cfloat>
#include <cmath>
#include <limits>

#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Polynomials are near-minimax fits on the reduced ranges named beside them.
template <class Arch>
struct MathFunctions {
  using S = Simd<Arch>;
  using F = typename S::F;
  using I = typename S::I;

  static constexpr float ln2_high = 0.693359375f;  // few bits, so that its product with an exponent is exact
  static constexpr float ln2_low = -2.12194440e-4f;
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  // Numbers of a polynomial, each in all lanes of a vector.
  template <size_t count>
  struct Coefficients {
    alignas(sizeof(F)) float rows[count][S::width];
  };
  template <size_t count>
  static constexpr Coefficients<count> in_all_lanes(const float (&values)[count]) {
    Coefficients<count> result{};
    for (size_t i = 0; i < count; ++i)
      for (float& lane : result.rows[i]) lane = values[i];
    return result;
  }

  // What a polynomial adds; loaded for each vector where that pays for single ones too.
  static F summand(const float* lanes) {
    if constexpr (requires { Arch::always_loads_addends; })
      return S::addend(lanes);
    else
      return S::load(lanes);
  }

  // c0 + c1 * x + c2 * x^2 + …, by pairs: (c0 + c1 * x) + x^2 * ((c2 + c3 * x) + …), which halves the chain of
  // operations that wait for each other.
  template <size_t count>
  static F polynomial(F x, const Coefficients<count>& c) {
    const F square = x * x;
    const auto pair = [&](size_t i) { return S::fma(x, S::load(c.rows[i + 1]), summand(c.rows[i])); };
    constexpr size_t last = (count - 1) / 2 * 2;
    F result = count % 2 ? S::load(c.rows[last]) : pair(last);
#pragma GCC unroll 16
    for (size_t i = last; i > 0; i -= 2) result = S::fma(result, square, pair(i - 2));
    return result;
  }

  // Calls step(i) for i < count, so that operations of several vectors alternate.
  template <int count, class Step>
  [[gnu::always_inline]] static void each(Step step) {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) step(i);
  }

  // The same as polynomial for several x, of an even number of coefficients.
  template <int count, size_t terms>
  [[gnu::always_inline]] static void polynomials(const F (&x)[count], const Coefficients<terms>& c,
                                                 F (&result)[count]) {
    static_assert(terms % 2 == 0);
    F square[count];
    const auto pair = [&](int i, size_t k) { return S::fma(x[i], S::load(c.rows[k + 1]), S::addend(c.rows[k])); };
    each<count>([&](int i) { square[i] = x[i] * x[i]; });
    each<count>([&](int i) { result[i] = pair(i, terms - 2); });
#pragma GCC unroll 16
    for (size_t k = terms - 2; k > 0; k -= 2)
      each<count>([&](int i) { result[i] = S::fma(result[i], square[i], pair(i, k - 2)); });
  }

  // Nearest integer, for |x| < 2^22.
  static F round(F x) {
    const F shift = S::set(12582912.0f);
    return (x + shift) - shift;
  }

  // 2^n for n in [-126, 127].
  static F power_of_two(I n) { return S::from_bits((n + 127) << 23); }

  // x * 2^n for a whole n.
  static F times_power_of_two(F x, F n) {
    if constexpr (requires { Arch::scale(x, n); }) return Arch::scale(x, n);
    // In two factors, because the result may be denormal or infinite where 2^n is not a normal float.
    const I whole = S::truncate(n), half = whole >> 1;
    return x * power_of_two(half) * power_of_two(whole - half);
  }

  // x = n * log(2) + r with a whole n and |r| <= log(2) / 2, for |x| < 2^20.
  static F reduce_exponent(F x, F& n) {
    const F shift = S::set(12582912.0f);
    n = S::fma(x, S::set(1.44269504f), shift) - shift;
    const F r = S::fma(n, S::set(-ln2_high), x);
    return S::fma(n, S::set(-ln2_low), r);
  }

  // exp(r) - 1 on |r| <= log(2) / 2.
  static F expm1_reduced(F r) {
    static constexpr auto coefficients =
        in_all_lanes({0.5f, 0.16666577f, 0.04166655463f, 0.00836317763f, 0.001392618181f});
    const F q = polynomial(r, coefficients);
    return S::fma(r * r, q, r);
  }

  static F exp(F x) {
    const F clamped = S::at_most(S::set(89.0f), S::at_least(S::set(-104.5f), x));
    F n;
    const F e = expm1_reduced(reduce_exponent(clamped, n)) + 1.0f;
    return times_power_of_two(e, n);
  }

  // Whether there is an instruction for powers of two whose exponents are sixty-fourths.
  static constexpr bool has_powers_of_sixty_fourths = requires(F v) { Arch::power_of_last_bits(v); };

  // By that, exp(x) or exp(-x), for exponents of -127 to 128 times log(2): 0 and infinity at the ends.
  template <bool minus>
  static F exp_of_sixty_fourths(F x) {
    constexpr float sign = minus ? -1 : 1;
    // The last bits of numbers from 2^17 on are sixty-fourths.
    static constexpr auto shift = in_all_lanes({196608.0f + 127.0f});
    static constexpr auto coefficients = in_all_lanes({1.0f, sign});
    const F shifted = S::fma(x, S::set(sign * 1.44269504f), S::addend(shift.rows[0]));
    const F power = Arch::power_of_last_bits(shifted), n = shifted - S::load(shift.rows[0]);
    // So little is left that exp(r) - 1 is r + r^2 / 2.
    const F r = S::fma(n, S::set(-sign * ln2_low), S::fma(n, S::set(-sign * ln2_high), x));
    const F sum = S::fma(r, S::set(0.5f), S::addend(coefficients.rows[1]));
    return S::fma(r, sum, S::addend(coefficients.rows[0])) * power;
  }

  // exp(x) for x of at most 0; 0 where that is no normal float.
  static F exp_nonpositive(F x) {
    if constexpr (has_powers_of_sixty_fourths)
      return exp_of_sixty_fourths<false>(S::at_least(S::set(-127 * 0.693147181f), x));
    const F clamped = S::at_least(S::set(-88.0f), x);
    // The last bits of `shifted` are n + 127, the exponent field of 2^n; at the clamp that is 0.
    const F shift = S::set(12582912.0f + 127.0f), shifted = S::fma(clamped, S::set(1.44269504f), shift);
    const F n = shifted - shift, r = S::fma(n, S::set(-ln2_low), S::fma(n, S::set(-ln2_high), clamped));
    return (expm1_reduced(r) + 1.0f) * S::from_bits(S::bits(shifted) << 23);
  }

  // The same for several at once and within 5e-7 of it, with fewer operations: for terms of sums.
  template <int count>
  [[gnu::always_inline]] static void exp_terms(F (&x)[count]) {
    if constexpr (has_powers_of_sixty_fourths) return exp_terms_of_sixty_fourths(x);
    static constexpr auto shift = in_all_lanes({12582912.0f + 127.0f});
    static constexpr auto coefficients =
        in_all_lanes({1.0f, 0.9999997037f, 0.4999914276f, 0.1666764394f, 0.04189885128f, 0.008290144139f});
    F shifted[count], sum[count];
    each<count>([&](int i) { x[i] = S::at_least(S::set(-88.0f), x[i]); });
    each<count>([&](int i) { shifted[i] = S::fma(x[i], S::set(1.44269504f), S::addend(shift.rows[0])); });
    each<count>([&](int i) { x[i] = S::fma(shifted[i] - S::load(shift.rows[0]), S::set(-0.693147181f), x[i]); });
    each<count>([&](int i) { sum[i] = S::load(coefficients.rows[5]); });
#pragma GCC unroll 5
    for (size_t k = 5; k > 0; --k)
      each<count>([&](int i) { sum[i] = S::fma(sum[i], x[i], S::addend(coefficients.rows[k - 1])); });
    each<count>([&](int i) { x[i] = sum[i] * S::from_bits(S::bits(shifted[i]) << 23); });
  }

  // As exp_of_sixty_fourths. Results below the least normal float are any others below it.
  template <int count>
  [[gnu::always_inline]] static void exp_terms_of_sixty_fourths(F (&x)[count]) {
    static constexpr auto shift = in_all_lanes({196608.0f + 127.0f}), one = in_all_lanes({1.0f});
    F shifted[count], power[count], sum[count];
    each<count>([&](int i) { x[i] = S::at_least(S::set(-127 * 0.693147181f), x[i]); });
    each<count>([&](int i) { shifted[i] = S::fma(x[i], S::set(1.44269504f), S::addend(shift.rows[0])); });
    each<count>([&](int i) { power[i] = Arch::power_of_last_bits(shifted[i]); });
    each<count>([&](int i) { x[i] = S::fma(shifted[i] - S::load(shift.rows[0]), S::set(-0.693147181f), x[i]); });
    each<count>([&](int i) { sum[i] = S::fma(x[i], S::set(0.5f), S::addend(one.rows[0])); });
    each<count>([&](int i) { x[i] = S::fma(power[i], x[i] * sum[i], power[i]); });
  }

  static constexpr float largest_exponent = has_powers_of_sixty_fourths ? 128 * 0.693147181f : 89;

  // exp(-x) for x of at least -largest_exponent; 0 and infinity where that is no normal float.
  static F exp_of_minus(F x) {
    if constexpr (has_powers_of_sixty_fourths)
      return exp_of_sixty_fourths<true>(S::at_most(S::set(127 * 0.693147181f), x));
    const F clamped = S::at_most(S::set(88.0f), x);
    // As above, with r = -s; 0 and 255 are the exponent fields of 0 and infinity.
    const F shift = S::set(12582912.0f + 127.0f), shifted = S::fma(clamped, S::set(-1.44269504f), shift);
    const F n = shifted - shift, s = S::fma(n, S::set(ln2_low), S::fma(n, S::set(ln2_high), clamped));
    static constexpr auto coefficients =
        in_all_lanes({0.5f, -0.16666577f, 0.04166655463f, -0.00836317763f, 0.001392618181f});
    const F q = polynomial(s, coefficients);
    return S::fma(s * s, q, 1.0f - s) * S::from_bits(S::bits(shifted) << 23);
  }

  // exp(x) - 1 for x of at most 80.
  static F expm1_small(F x) {
    F n;
    const F e = expm1_reduced(reduce_exponent(x, n));
    const F power = power_of_two(S::truncate(n));
    return S::fma(e, power, power - 1.0f);
  }

  // exp(x) - 1 where x is below 0, else 0.
  static F expm1_nonpositive(F x) { return expm1_small(S::at_most(S::set(0.0f), S::at_least(S::set(-20.0f), x))); }

  static F expm1(F x) {
    const F low = expm1_small(S::at_most(S::set(80.0f), S::at_least(S::set(-20.0f), x)));
    return x > 80.0f ? exp(x) : copy_sign(low, x);
  }

  // log(1 + f) - low, on 1 + f in [sqrt(1/2), sqrt(2)].
  static F log1p_reduced(F f, F low) {
    static constexpr auto coefficients =
        in_all_lanes({0.3333333117f, -0.2499999691f, 0.200007172f, -0.1666780858f, 0.1424900932f, -0.1242548656f,
                      0.1168571964f, -0.1148147724f, 0.06973070409f});
    const F p = polynomial(f, coefficients);
    const F square = f * f;
    F tail = S::fma(square * f, p, low);
    tail = S::fma(square, S::set(-0.5f), tail);
    return f + tail;
  }

  // log(x / 2^halvings) + low, for a normal x and a low that is small beside it.
  static F log_of_normal(F x, I halvings, F low) {
    // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
    const I shifted = S::bits(x) - 0x3f3504f3;
    const F mantissa = S::from_bits((shifted & 0x007fffff) + 0x3f3504f3);
    const F e = S::to_float((shifted >> 23) - halvings);
    return S::fma(e, S::set(ln2_high), log1p_reduced(mantissa - 1.0f, S::fma(e, S::set(ln2_low), low)));
  }

  static F log(F x) {
    const F positive = x > 0.0f ? x : S::set(1.0f);
    const I denormal = positive < FLT_MIN;
    const F result = log_of_normal(denormal ? positive * 8388608.0f : positive, denormal & 23, F{});
    const F special = x == 0.0f ? S::set(-infinity) : x < 0.0f ? S::set(NAN) : x;
    return ((x > 0.0f) & (x < infinity)) ? result : special;
  }

  // log(1 + e) for e in [0, 1].
  static F log1p_unit(F e) {
    const I upper = e > 0.4142f;
    const F f = upper ? (e - 1.0f) * 0.5f : e;
    const F result = log1p_reduced(f, upper ? S::set(ln2_low) : F{});
    return upper ? result + ln2_high : result;
  }

  static F copy_sign(F magnitude, F sign) {
    if constexpr (requires { Arch::copy_sign(magnitude, sign); }) return Arch::copy_sign(magnitude, sign);
    return S::from_bits((S::bits(magnitude) & 0x7fffffff) | (S::bits(sign) & int32_t(0x80000000)));
  }

  static F tanh(F x) {
    // Beyond 10 it is 1.
    const F a = S::at_most(S::set(10.0f), S::abs(x));
    // As in exp_nonpositive, 2 * a = n * log(2) + 2 * r; e is (exp(2 * r) - 1) / 2, and then (exp(2 * a) - 1) / 2.
    const F shift = S::set(12582912.0f + 127.0f), shifted = S::fma(a, S::set(2 * 1.44269504f), shift);
    const F n = shifted - shift;
    const F r = S::fma(n, S::set(-0.5f * ln2_low), S::fma(n, S::set(-0.5f * ln2_high), a));
    static constexpr auto coefficients =
        in_all_lanes({2 * 0.5f, 4 * 0.16666577f, 8 * 0.04166655463f, 16 * 0.00836317763f, 32 * 0.001392618181f});
    F e = S::fma(r * r, polynomial(r, coefficients), r);
    const F power = S::from_bits(S::bits(shifted) << 23);
    e = S::fma(e, power, S::fma(power, S::set(0.5f), S::set(-0.5f)));
    return copy_sign(e / (e + 1.0f), x);
  }

  // 1 / x of several, rounded as a division is. Half of them are divided: the unit that does that is one of its own. A
  // lane of `doubt` becomes NaN or larger than 2^64 where the other half may have gone wrong, beyond normal numbers.
  template <int count>
  [[gnu::always_inline]] static void reciprocals(F (&x)[count], F& doubt) {
    static constexpr auto minus_one = in_all_lanes({-1.0f});
    constexpr int half = count / 2;
    F estimate[half], excess[half];
    const auto find_excess = [&](int i) { excess[i] = S::fma(x[i], estimate[i], S::addend(minus_one.rows[0])); };
    each<count - half>([&](int i) { x[half + i] = 1.0f / x[half + i]; });
    // The last bit keeps estimates of numbers just below a power of two from being one, whose error rounds to nothing.
    each<half>([&](int i) { estimate[i] = S::from_bits(S::bits(Arch::reciprocal_estimate(x[i])) | 1); });
    each<half>(find_excess);
    each<half>([&](int i) { excess[i] = Arch::fnma(excess[i], excess[i], excess[i]); });
    each<half>([&](int i) { estimate[i] = Arch::fnma(estimate[i], excess[i], estimate[i]); });
    each<half>(find_excess);
    each<half>([&](int i) { doubt = S::fma(x[i], excess[i], doubt); });
    each<half>([&](int i) { x[i] = Arch::fnma(estimate[i], excess[i], estimate[i]); });
  }
  static F reciprocal(F x) { return 1.0f / x; }

  // x / (1 + exp(-y)) for an x that is finite where y is below -88; 0 where that factor is no normal float, here and in
  // softplus: numbers that small are slow to compute with.
  static F times_sigmoid(F x, F y) { return x / (1.0f + exp_of_minus(S::at_least(S::set(-largest_exponent), y))); }
  static F sigmoid(F x) { return times_sigmoid(S::set(1.0f), x); }

  static F choose(I mask, F a, F b) { return S::choose(mask, a, b); }

  // erf(x) / x as a polynomial of x^2, on |x| <= 1.
  static F erf_small(F x) {
    static constexpr auto coefficients =
        in_all_lanes({1.12837913f, -0.376123557f, 0.112804116f, -0.0267177062f, 0.00492478812f, -0.000566014965f});
    return x * polynomial(x * x, coefficients);
  }

  // erf(x) on [1, 3.92].
  static F erf_large(F x) {
    static constexpr auto coefficients = in_all_lanes(
        {0.000503326792f, -0.00387804413f, 0.0139316301f, -0.0306015756f, 0.0450048078f, -0.0450947748f, 0.0287023675f,
         -0.00653455136f, -0.00807408366f, 0.00909225818f, -0.00227481955f, -0.00163291901f, 0.000856400781f});
    return 1.0f - polynomial(S::fma(x, S::set(0.684931507f), S::set(-1.68493151f)), coefficients);
  }

  // From 3.92 on it is 1.
  static F erf(F x) {
    const F a = S::abs(x);
    const F large = choose(a >= 3.92f, S::set(1.0f), erf_large(a));
    return choose(a > 1.0f, copy_sign(large, x), erf_small(x));
  }

  // erf(x) to 2e-5 of it, which is a small part of a half precision float's last place. From 2.75 on that is 1.
  static F erf_for_half(F x) {
    static constexpr auto coefficients =
        in_all_lanes({1.12837059f, -0.375958874f, 0.112268286f, -0.026087622f, 0.0046670153f, -0.000618078029f,
                      5.6146923e-05f, -3.07094362e-06f, 7.53026146e-08f});
    const F near = S::clamp(x, S::set(-2.75f), S::set(2.75f));
    return near * polynomial(near * near, coefficients);
  }

  // Keeps a product with a factor that went to zero from being NaN.
  static F finite_below(F x) { return S::at_least(S::set(-FLT_MAX), x); }

  // max(x, 0), less |x| / 2 * erfc(|x| / sqrt(2)), of which nothing is left from 5.5 on. Of several at once.
  template <int count>
  [[gnu::always_inline]] static void gelu(F (&x)[count]) {
    // -erfc(a / sqrt(2)) / 2 on [0, 5.5], with t from -1 to 1; exactly 0 where t is 1.
    static constexpr auto coefficients =
        in_all_lanes({-0.00297978614f, 0.0250081047f, -0.0945579186f, 0.206807896f, -0.271890253f, 0.177167386f,
                      0.051400695f, -0.218446285f, 0.163046852f, 0.0349586532f, -0.133184418f, 0.0490235053f,
                      0.0434899665f, -0.0300909858f, -0.00532164751f, 0.0055682431f});
    static constexpr auto minus_one = in_all_lanes({-1.0f});
    F a[count], t[count], p[count];
    each<count>([&](int i) { a[i] = S::at_most(S::set(5.5f), S::abs(x[i])); });
    each<count>([&](int i) { t[i] = S::fma(a[i], S::set(2 / 5.5f), S::addend(minus_one.rows[0])); });
    polynomials(t, coefficients, p);
    each<count>([&](int i) { x[i] = S::fma(a[i], p[i], S::at_least(S::set(0.0f), x[i])); });
  }
  // The same within 1e-6, for what is rounded to float16 then.
  static F gelu_for_half(F x) {
    // erfc(a / sqrt(2)) / 2 on [0, 5.35].
    static constexpr auto coefficients = in_all_lanes(
        {0.00373673566f, -0.0298133434f, 0.106633652f, -0.218839346f, 0.264938097f, -0.143964092f, -0.0854776326f,
         0.209907546f, -0.107759315f, -0.0637099118f, 0.090046607f, -0.0117915069f, -0.0221256371f, 0.00821805369f});
    const F a = S::abs(x), p = polynomial(S::fma(a, S::set(2 / 5.35f), S::set(-1.0f)), coefficients);
    const I near = a < 5.35f;
    return S::at_least(S::set(0.0f), x) - S::from_bits(S::bits(a * p) & near);
  }

  static F gelu_tanh(F x) {
    const F inner = x * S::fma(x * x, S::set(0.07135481627f), S::set(1.595769122f));
    return times_sigmoid(finite_below(x), inner);
  }

  // 0 below -44: it is within 2^-57 of it there, and products of numbers that small are slow to compute with.
  static F silu(F x) {
    const I tiny = x < -44.0f;
    return S::from_bits(S::bits(times_sigmoid(x, x)) & ~tiny);
  }

  // x * (x / 6 + 1 / 2, between 0 and 1), every step of it rounded, as the operators that it stands for would.
  static F hard_swish(F x) {
    const F gate = S::at_least(S::set(0.0f), x * (1.0f / 6) + 0.5f);
    return finite_below(x) * S::at_most(S::set(1.0f), gate);
  }

  static F softplus(F x) {
    const F result = S::max(F{}, x) + log1p_unit(exp_nonpositive(-S::abs(x)));
    return x == x ? result : x;
  }

  static constexpr float largest_reduced_angle = 8192;

  // Of an angle between -pi / 4 and pi / 4.
  struct SineAndCosine {
    F sine, cosine;
  };
  static SineAndCosine of_small_angle(F r) {
    const F square = r * r;
    static constexpr auto coefficients =
        in_all_lanes({-0.1666666666f, 0.008333331874f, -0.0001984008655f, 2.724990116e-6f});
    static constexpr auto more_coefficients =
        in_all_lanes({0.04166666666f, -0.001388888767f, 2.480060022e-5f, -2.730093863e-7f});
    // The sine of -0 is -0.
    return {
        copy_sign(S::fma(r * square, polynomial(square, coefficients), r), r),
        S::fma(square * square, polynomial(square, more_coefficients), S::fma(square, S::set(-0.5f), S::set(1.0f)))};
  }

  // sin (quarter = 0) or cos (quarter = 1) for |x| <= largest_reduced_angle.
  static F sine(F x, int quarter) {
    const F n = round(x * 0.636619772f);
    // pi / 2 in parts of few bits each, so that the products are exact.
    F r = S::fma(n, S::set(-1.5703125f), x);
    r = S::fma(n, S::set(-4.837512969970703125e-4f), r);
    r = S::fma(n, S::set(-7.54978995489188e-8f), r);
    const auto [s, c] = of_small_angle(r);
    const I quadrant = S::truncate(n) + quarter;
    const F value = choose(-(quadrant & 1), c, s);
    return S::from_bits(S::bits(value) ^ ((quadrant & 2) << 30));
  }

  // As above, with one part more: where sin or cos is nearly 0, every bit of it counts.
  static F tan(F x) {
    const F n = round(x * 0.636619772f);
    F r = S::fma(n, S::set(-1.5703125f), x);
    r = S::fma(n, S::set(-4.837512969970703125e-4f), r);
    r = S::fma(n, S::set(-7.549533620476723e-8f), r);
    r = S::fma(n, S::set(-2.5633440682570896e-12f), r);
    const auto [s, c] = of_small_angle(r);
    const I is_odd = -(S::truncate(n) & 1);
    return choose(is_odd, -c, s) / choose(is_odd, s, c);
  }

  static F sin(F x) { return sine(x, 0); }
  static F cos(F x) { return sine(x, 1); }
  static float exact_sin(float x) { return std::sin(x); }
  static float exact_cos(float x) { return std::cos(x); }
  static float exact_tan(float x) { return std::tan(x); }

  static constexpr float pi = 3.14159274f, half_pi = 1.57079633f;

  // asin(x) for x in [0, 0.5], given x and its square.
  static F asin_reduced(F x, F square) {
    static constexpr auto coefficients =
        in_all_lanes({0.1666675248f, 0.07495297614f, 0.04547037918f, 0.02417949907f, 0.04216633588f});
    return S::fma(x * square, polynomial(square, coefficients), x);
  }

  // asin(|x|) is angle where `small`, else pi / 2 - 2 * angle. NaN beyond 1.
  static F asin_half(F x, I& small) {
    const F a = S::abs(x);
    small = a <= 0.5f;
    const F square = choose(small, a * a, (1.0f - a) * 0.5f);
    return asin_reduced(choose(small, a, S::sqrt(square)), square);
  }

  static F asin(F x) {
    I small;
    const F angle = asin_half(x, small);
    return copy_sign(choose(small, angle, S::fma(angle, S::set(-2.0f), S::set(half_pi))), x);
  }

  // acos(|x|) is sqrt(1 - |x|) times a polynomial of |x|. Where x has a sign, it is taken from pi: from a float that is
  // more than pi, so the polynomial begins with the next float too. Of several at once.
  template <int count>
  [[gnu::always_inline]] static void acos(F (&x)[count]) {
    static constexpr auto coefficients =
        in_all_lanes({-0.21460436f, 0.0890767768f, -0.0508827671f, 0.0335086016f, -0.0224460876f, 0.0128235224f,
                      -0.00497150007f, 0.000913009859f});
    F a[count], angle[count], root[count];
    each<count>([&](int i) { a[i] = S::abs(x[i]); });
    each<count>([&](int i) { root[i] = S::sqrt(1.0f - a[i]); });
    each<count>([&](int i) { angle[i] = S::load(coefficients.rows[7]); });
#pragma GCC unroll 8
    for (size_t k = 7; k > 0; --k)
      each<count>([&](int i) { angle[i] = S::fma(angle[i], a[i], S::addend(coefficients.rows[k - 1])); });
    each<count>([&](int i) {
      const I has_sign = S::bits(x[i]) >> 31;  // -1 or 0
      angle[i] = S::fma(angle[i], a[i], S::from_bits(S::bits(S::set(half_pi)) - has_sign));
      x[i] = S::fma(angle[i], copy_sign(root[i], x[i]), S::from_bits(has_sign & S::bits(S::set(pi))));
    });
  }

  static F atan(F x) {
    const F a = S::abs(x);
    const I large = a > 1.0f;
    const F t = large ? 1.0f / a : a;
    const F square = t * t;
    static constexpr auto coefficients =
        in_all_lanes({-0.3333329909f, 0.1999854819f, -0.1426424069f, 0.1095218054f, -0.08403434867f, 0.05795732646f,
                      -0.03117757759f, 0.0109144607f, -0.001793589067f});
    // (atan(t) - t) / t^3 on t <= 1.
    const F p = polynomial(square, coefficients);
    const F angle = S::fma(t * square, p, t);
    return copy_sign(large ? half_pi - angle : angle, x);
  }
};

}  // namespace tenon::kernels
