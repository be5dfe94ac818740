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
template <typename T, int N, int ROW> inline void group_64xNx16(float (&d)[N / 8][4], Matrix a, Matrix b, bool adds) {
  GroupByColumns<T, N>::multiply(d, a.place, b.place, adds);
}
template <int STEP> inline Matrix plain_at(const u8* p) {
  return {(u64)(shared_address(p) >> 4) | (u64)(STEP / 16) << 16 | (u64)(128 / 16) << 32};
}
template <typename T, int N, int A_STEP, int B_STEP>
inline void group_plain_64xNx16(float (&d)[N / 8][4], Matrix a, Matrix b, bool adds) {
  GroupByColumns<T, N>::multiply(d, a.place, b.place, adds);
}
template <int N, int ROW>
inline void group_by_rows_64xNx8(float (&d)[N / 8][4], const u32 (&a)[4], Matrix b, bool adds) {
  GroupByRows<float, N>::multiply(d, a, b.place, adds);
}
template <typename T, int N, int ROW>
inline void group_by_rows_64xNx16(float (&d)[N / 8][4], const u32 (&a)[4], Matrix b, bool adds) {
  GroupByRows<T, N>::multiply(d, a, b.place, adds);
}
template <int SLAB> inline Matrix slabs_at(const u8* p) {
  return {(u64)(shared_address(p) >> 4) | (u64)(SLAB / 16) << 16 | (u64)(1024 / 16) << 32 | (u64)1 << 62};
}
template <typename T, int N, int SLAB>
inline void group_by_slabs_64xNx16(float (&d)[N / 8][4], Matrix a, Matrix b, bool adds) {
  GroupBySlabs<T, N>::multiply(d, a.place, b.place, adds);
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

// Where the left side comes from: how it is given, its operands, and what the instruction says of how both sides lie.
struct LeftSide {
  std::string_view structure, parameter, places, operands;
  int64_t count;
  std::string_view order;
};

constexpr LeftSide from_memory{"GroupByColumns", "u64 a", "%{0}", "\"l\"(a)", 1, ", 0, 0"};
constexpr LeftSide beside_slabs{"GroupBySlabs", "u64 a", "%{0}", "\"l\"(a)", 1, ", 0, 1"};
constexpr LeftSide from_registers{"GroupByRows",
                                  "const u32 (&a)[4]",
                                  "{{%{0}, %{1}, %{2}, %{3}}}",
                                  "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])",
                                  4,
                                  ", 1"};

// Elements: their type here, in the instruction, and how many it takes of a row.
struct Element {
  std::string_view type, name;
  int depth;
  bool has_order;  // else both sides lie by columns
};
constexpr Element halves[] = {{"f16", "f16", 16, true}, {"bf16", "bf16", 16, true}};
constexpr Element tf32{"float", "tf32", 8, false};

std::string product_text(const LeftSide& left, const Element& element, int64_t n) {
  const Sums sums(n);
  const int64_t next = n / 2;
  return fmt::format(
      "template <> struct {structure}<{type}, {n}> {{\n"
      "  static void multiply(float (&d)[{n} / 8][4], {parameter}, u64 b, bool adds) {{\n"
      "    asm volatile(\"{{.reg .pred p; setp.ne.u32 p, %{adds}, 0; wgmma.mma_async.sync.aligned.m64n{n}k{depth}.f32."
      "{name}.{name} {{{names}}}, {a}, %{b}, p, 1, 1{order};}}\"\n"
      "                 : {operands} : {left}, \"l\"(b), \"r\"((u32)adds));\n  }}\n}};\n",
      fmt::arg("structure", left.structure), fmt::arg("parameter", left.parameter), fmt::arg("type", element.type),
      fmt::arg("name", element.name), fmt::arg("depth", element.depth), fmt::arg("n", n), fmt::arg("names", sums.names),
      fmt::arg("operands", sums.operands),
      fmt::arg("a", fmt::format(fmt::runtime(left.places), next, next + 1, next + 2, next + 3)),
      fmt::arg("b", next + left.count), fmt::arg("adds", next + left.count + 1), fmt::arg("left", left.operands),
      fmt::arg("order", element.has_order ? left.order : ""));
}

}  // namespace

std::string group_products_text(std::initializer_list<int64_t> columns, std::initializer_list<int64_t> rows,
                                std::initializer_list<int64_t> slabs) {
  std::string text(beginning);
  for (const Element& element : halves) {
    for (int64_t n : std::set<int64_t>(columns)) text += product_text(from_memory, element, n);
    for (int64_t n : std::set<int64_t>(rows)) text += product_text(from_registers, element, n);
    for (int64_t n : std::set<int64_t>(slabs)) text += product_text(beside_slabs, element, n);
  }
  return text + std::string(end);
}

std::string tf32_group_products_text(std::initializer_list<int64_t> columns, std::initializer_list<int64_t> rows) {
  std::string text(beginning);
  for (int64_t n : std::set<int64_t>(columns)) text += product_text(from_memory, tf32, n);
  for (int64_t n : std::set<int64_t>(rows)) text += product_text(from_registers, tf32, n);
  return text + std::string(end);
}

int64_t held_row(int64_t columns, int64_t bytes) { return bytes == 2 && columns / 8 % 2 != 0 ? columns : columns + 8; }

}  // namespace tenon::ops
