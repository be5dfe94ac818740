#include "kernels/simd/portable.h"

#include "kernels/gemm_nbits/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct NbitsPortable : Portable {
  static constexpr int vectors = 2;
  struct Codes {
    uint8_t at[width * nbits_group];
  };

  template <int bits>
  static void codes(const uint8_t* from, int group, Codes (&to)[vectors]) {
    for (int v = 0; v < vectors; ++v) {
      for (int i = 0; i < width * nbits_group; ++i) {
        to[v].at[i] = bits == 8 ? from[width * nbits_group * v + i]
                                : static_cast<uint8_t>(from[i] >> (group * 4 + v * bits) & ((1 << bits) - 1));
      }
    }
  }
  static F fma(F a, F b, F c) {
    return F{std::fma(a[0], b[0], c[0]), std::fma(a[1], b[1], c[1]), std::fma(a[2], b[2], c[2]),
             std::fma(a[3], b[3], c[3])};
  }
  static constexpr int32_t excess(int bits) { return 1 << (bits - 1); }
  static const int8_t* digits(const int8_t* from) { return from; }

  template <int bits, int lane>
  static I dot(I sums, const Codes& codes, const int8_t* digits) {
    const auto sum = [&](int column) {
      int32_t result = 0;
      for (int i = 0; i < nbits_group; ++i)
        result += codes.at[column * nbits_group + i] * digits[lane * nbits_group + i];
      return result;
    };
    return sums + I{sum(0), sum(1), sum(2), sum(3)};
  }
};

}  // namespace

constexpr NbitsKernels nbits_kernels_portable = NbitsTiles<NbitsPortable>::table("portable");

}  // namespace tenon::kernels
