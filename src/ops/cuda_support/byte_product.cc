#include "ops/cuda_support/byte_product.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

constexpr int64_t tile = 64;

// A block has a tile of 64 x 64 sums, a thread 4 x 4 of them, 16 apart. Codes lie in shared memory four to a word,
// along k.
constexpr const char* functions_text = R"(
#ifdef TENON_EMULATED
inline i32 dot4(u32 a, u32 b, i32 sum) {
  for (int i = 0; i < 32; i += 8) sum += (i32)(i8)(a >> i) * (i32)(i8)(b >> i);
  return sum;
}
#else
inline i32 dot4(u32 a, u32 b, i32 sum) { return __dp4a((int)a, (int)b, sum); }
#endif
)";

}  // namespace

CudaBlocks CudaByteProduct::make(KernelRun& run) const {
  const int64_t rows = (m + tile - 1) / tile, columns = (n + tile - 1) / tile;
  cuda::Grid grid;
  grid.threads = 256;
  if (rows * columns >= int64_t{1} << 31 || (count + 32767) / 32768 > 65535)
    fail(ErrorCode::unsupported, "a product of {} matrices of {} x {} is too large for the GPU", count, m, n);
  grid.blocks[0] = static_cast<unsigned>(rows * columns);
  grid.blocks[1] = static_cast<unsigned>(std::min<int64_t>(count, 32768));
  grid.blocks[2] = static_cast<unsigned>((count + 32767) / 32768);
  std::vector<int64_t> all{count, m, n, k};
  all.insert(all.end(), numbers.begin(), numbers.end());
  const std::string body = fmt::format(
      R"(const i64 matrix = blockIdx.y + (i64)gridDim.y * blockIdx.z;
  if (matrix >= v[0]) return;
  {setup}
  __shared__ u32 a_words[8][65], b_words[8][64];
  const i64 tiles = (v[2] + 63) / 64, first_row = blockIdx.x / tiles * 64, first_column = blockIdx.x % tiles * 64;
  const int across = threadIdx.x % 16, down = threadIdx.x / 16;
  Sum sums[4][4] = {{}}, row_sums[4] = {{}}, column_sums[4] = {{}};
  for (i64 first = 0; first < v[3]; first += 32) {{
    for (int t = threadIdx.x; t < 512; t += 256) {{
      const i64 row = first_row + t / 8, column = first_column + t % 64;
      u32 word = 0;
      for (int j = 0; j < 4; ++j) {{
        const i64 k = first + t % 8 * 4 + j;
        if (row < v[1] && k < v[3]) word |= (u32)(u8)({a_code}) << 8 * j;
      }}
      a_words[t % 8][t / 8] = word;
      word = 0;
      for (int j = 0; j < 4; ++j) {{
        const i64 k = first + t / 64 * 4 + j;
        if (column < v[2] && k < v[3]) word |= (u32)(u8)({b_code}) << 8 * j;
      }}
      b_words[t / 64][t % 64] = word;
    }}
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {{
      u32 a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {{
        a[i] = a_words[k][down + 16 * i];
        b[i] = b_words[k][across + 16 * i];
        row_sums[i] = add4(a[i], 0x01010101, row_sums[i]);
        column_sums[i] = add4(b[i], 0x01010101, column_sums[i]);
      }}
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = add4(a[i], b[j], sums[i][j]);
    }}
    __syncthreads();
  }}
  for (int i = 0; i < 4; ++i) {{
    for (int j = 0; j < 4; ++j) {{
      const i64 row = first_row + down + 16 * i, column = first_column + across + 16 * j;
      if (row >= v[1] || column >= v[2]) continue;
      const Sum of_a = ({a_zero}), of_b = ({b_zero});
      const Sum sum = sums[i][j] - of_a * column_sums[j] - of_b * row_sums[i] + (Sum)v[3] * of_a * of_b;
      {finish}
    }}
  }})",
      fmt::arg("setup", setup), fmt::arg("a_code", a_code), fmt::arg("b_code", b_code), fmt::arg("a_zero", a_zero),
      fmt::arg("b_zero", b_zero), fmt::arg("finish", finish));
  const std::string sum =
      wide ? "typedef i64 Sum;\ninline Sum add4(u32 a, u32 b, Sum sum) { return sum + dot4(a, b, 0); }\n"
           : "typedef i32 Sum;\ninline Sum add4(u32 a, u32 b, Sum sum) { return dot4(a, b, sum); }\n";
  return CudaBlocks(run, pointers, functions_text + sum + std::string(exact_product_text()) + functions, body, all,
                    grid);
}

std::string signed_code(ElementType type, std::string_view code) {
  return fmt::format("((i32){}{})", code, type == ElementType::uint8 ? " - 128" : "");
}

std::string zero_point(const KernelRun& run, size_t input, ElementType of, std::string_view pointer,
                       std::string_view index) {
  if (!run.has_input(input)) return signed_code(of, "0");
  const int64_t count = run.input(input).elements();
  return signed_code(run.input(input).type(), fmt::format("{}[{}]", pointer, count == 1 ? "0" : index));
}

std::string byte_pointer(ElementType type, std::string_view name) {
  return fmt::format("const {}* {}", type == ElementType::int8 ? "i8" : "u8", name);
}

std::string requantize_text(ElementType type, std::string_view addend, std::string_view scale, std::string_view zero,
                            std::string_view at) {
  const bool is_signed = type == ElementType::int8;
  return fmt::format(
      "const float scaled = rint(times((float)(sum{}{}), {})) + (float)({});\n      "
      "y[{}] = ({})(i32)(scaled > {}.0f ? (scaled < {}.0f ? scaled : {}.0f) : {}.0f);",
      addend.empty() ? "" : " + ", addend, scale, zero, at, is_signed ? "i8" : "u8", is_signed ? -128 : 0,
      is_signed ? 127 : 255, is_signed ? 127 : 255, is_signed ? -128 : 0);
}

}  // namespace tenon::ops
