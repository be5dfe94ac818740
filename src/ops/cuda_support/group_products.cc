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
template <typename T, int N> struct GroupBySlabs;
)cuda";

constexpr std::string_view end = R"cuda(
template <typename T, int N, int ROW> inline void group_64xNx16(float (&d)[N / 8][4], const u8* a, const u8* b, bool adds) {
  GroupByColumns<T, N>::multiply(d, matrix_at<ROW>(a), matrix_at<ROW>(b), adds);
}
template <int STEP> inline u64 plain_at(const void* p) {
  return (u64)(shared_address(p) >> 4) | (u64)(STEP / 16) << 16 | (u64)(128 / 16) << 32;
}
template <typename T, int N, int A_STEP, int B_STEP>
inline void group_plain_64xNx16(float (&d)[N / 8][4], const u8* a, const u8* b, bool adds) {
  GroupByColumns<T, N>::multiply(d, plain_at<A_STEP>(a), plain_at<B_STEP>(b), adds);
}
template <typename T, int N, int ROW>
inline void group_by_rows_64xNx16(float (&d)[N / 8][4], const u32 (&a)[4], const u8* b, bool adds) {
  GroupByRows<T, N>::multiply(d, a, matrix_at<ROW>(b), adds);
}
template <typename T, int N, int SLAB>
inline void group_by_slabs_64xNx16(float (&d)[N / 8][4], const u8* a, const u8* b, bool adds) {
  const u64 slabs = (u64)(shared_address(b) >> 4) | (u64)(SLAB / 16) << 16 | (u64)(1024 / 16) << 32 | (u64)1 << 62;
  GroupBySlabs<T, N>::multiply(d, matrix_at<128>(a), slabs, adds);
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

// Where the left side comes from: how it is given, its operands, and what the instruction says of both sides.
struct LeftSide {
  std::string_view structure, parameter, places, operands;
  int64_t count;
  std::string_view flags;
};

constexpr LeftSide from_memory{"GroupByColumns", "u64 a", "%{0}", "\"l\"(a)", 1, "1, 1, 0, 0"};
constexpr LeftSide beside_slabs{"GroupBySlabs", "u64 a", "%{0}", "\"l\"(a)", 1, "1, 1, 0, 1"};
constexpr LeftSide from_registers{"GroupByRows",
                                  "const u32 (&a)[4]",
                                  "{{%{0}, %{1}, %{2}, %{3}}}",
                                  "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])",
                                  4,
                                  "1, 1, 1"};

std::string product_text(const LeftSide& left, std::string_view type, int64_t n) {
  const Sums sums(n);
  const int64_t next = n / 2;
  return fmt::format(
      "template <> struct {structure}<{type}, {n}> {{\n"
      "  static void multiply(float (&d)[{n} / 8][4], {parameter}, u64 b, bool adds) {{\n"
      "    asm volatile(\"{{.reg .pred p; setp.ne.u32 p, %{adds}, 0; wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{type}"
      ".{type} {{{names}}}, {a}, %{b}, p, {flags};}}\"\n"
      "                 : {operands} : {left}, \"l\"(b), \"r\"((u32)adds));\n  }}\n}};\n",
      fmt::arg("structure", left.structure), fmt::arg("parameter", left.parameter), fmt::arg("type", type),
      fmt::arg("n", n), fmt::arg("names", sums.names), fmt::arg("operands", sums.operands),
      fmt::arg("a", fmt::format(fmt::runtime(left.places), next, next + 1, next + 2, next + 3)),
      fmt::arg("b", next + left.count), fmt::arg("adds", next + left.count + 1), fmt::arg("left", left.operands),
      fmt::arg("flags", left.flags));
}

}  // namespace

std::string group_products_text(std::initializer_list<int64_t> columns, std::initializer_list<int64_t> rows,
                                std::initializer_list<int64_t> slabs) {
  std::string text(beginning);
  for (std::string_view type : {"f16", "bf16"}) {
    for (int64_t n : std::set<int64_t>(columns)) text += product_text(from_memory, type, n);
    for (int64_t n : std::set<int64_t>(rows)) text += product_text(from_registers, type, n);
    for (int64_t n : std::set<int64_t>(slabs)) text += product_text(beside_slabs, type, n);
  }
  return text + std::string(end);
}

}  // namespace tenon::ops
