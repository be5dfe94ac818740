#include "ops/cuda_support/group_products.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace tenon::ops {
namespace {

constexpr std::string_view beginning = R"cuda(
#ifndef TENON_EMULATED
inline void group_done(float (&d)[4]) {
  asm volatile("" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
}
template <typename T, int N> struct GroupByColumns;
template <typename T, int N> struct GroupByRows;
)cuda";

constexpr std::string_view end = R"cuda(
template <typename T, int N, int ROW> inline void group_64xNx16(float (&d)[N / 8][4], const u8* a, const u8* b, bool adds) {
  GroupByColumns<T, N>::multiply(d, matrix_at<ROW>(a), matrix_at<ROW>(b), adds);
}
template <typename T, int N, int ROW>
inline void group_by_rows_64xNx16(float (&d)[N / 8][4], const u32 (&a)[4], const u8* b, bool adds) {
  GroupByRows<T, N>::multiply(d, a, matrix_at<ROW>(b), adds);
}
#endif
)cuda";

// "%4, %5, …" and "+f"(d[1][0]), …
struct Sums {
  std::string names, operands;

  explicit Sums(int64_t columns) {
    for (int64_t i = 0; i < columns / 2; ++i) {
      names += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
      operands += fmt::format("{}\"+f\"(d[{}][{}])", i == 0 ? "" : ", ", i / 4, i % 4);
    }
  }
};

std::string by_columns(std::string_view type, int64_t n) {
  const Sums sums(n);
  const int64_t next = n / 2;
  return fmt::format(
      "template <> struct GroupByColumns<{type}, {n}> {{\n"
      "  static void multiply(float (&d)[{n} / 8][4], u64 a, u64 b, bool adds) {{\n"
      "    asm volatile(\"{{.reg .pred p; setp.ne.u32 p, %{adds}, 0; wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{type}"
      ".{type} {{{names}}}, %{a}, %{b}, p, 1, 1, 0, 0;}}\"\n"
      "                 : {operands} : \"l\"(a), \"l\"(b), \"r\"((u32)adds));\n  }}\n}};\n",
      fmt::arg("type", type), fmt::arg("n", n), fmt::arg("names", sums.names), fmt::arg("operands", sums.operands),
      fmt::arg("a", next), fmt::arg("b", next + 1), fmt::arg("adds", next + 2));
}

std::string by_rows(std::string_view type, int64_t n) {
  const Sums sums(n);
  const int64_t next = n / 2;
  return fmt::format(
      "template <> struct GroupByRows<{type}, {n}> {{\n"
      "  static void multiply(float (&d)[{n} / 8][4], const u32 (&a)[4], u64 b, bool adds) {{\n"
      "    asm volatile(\"{{.reg .pred p; setp.ne.u32 p, %{adds}, 0; wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{type}"
      ".{type} {{{names}}}, {{%{a0}, %{a1}, %{a2}, %{a3}}}, %{b}, p, 1, 1, 1;}}\"\n"
      "                 : {operands} : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), "
      "\"r\"((u32)adds));\n  }}\n}};\n",
      fmt::arg("type", type), fmt::arg("n", n), fmt::arg("names", sums.names), fmt::arg("operands", sums.operands),
      fmt::arg("a0", next), fmt::arg("a1", next + 1), fmt::arg("a2", next + 2), fmt::arg("a3", next + 3),
      fmt::arg("b", next + 4), fmt::arg("adds", next + 5));
}

}  // namespace

std::string group_products_text(std::initializer_list<int64_t> columns, std::initializer_list<int64_t> rows) {
  std::string text(beginning);
  for (std::string_view type : {"f16", "bf16"}) {
    for (int64_t n : std::set<int64_t>(columns)) text += by_columns(type, n);
    for (int64_t n : std::set<int64_t>(rows)) text += by_rows(type, n);
  }
  return text + std::string(end);
}

}  // namespace tenon::ops
