#include "ops/cuda_support/rows.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

namespace tenon::ops {
namespace {

constexpr int warp = 32, most_threads = 1024, most_holding_threads = 256, usual_threads = 256;

// base += where number `rest` of these axes is.
std::string axes_text(std::span<const ReducePlan::Axis> axes, std::string_view to, std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t k = axes.size(); k-- > 0;) {
    const size_t at = numbers.size();
    numbers.insert(numbers.end(), {axes[k].size, axes[k].stride});
    if (k > 0)
      text += fmt::format("{} += rest % v[{}] * v[{}]; rest /= v[{}];\n  ", to, at, at + 1, at);
    else
      text += fmt::format("{} += rest * v[{}];\n  ", to, at + 1);
  }
  return text;
}

// `text` with `to` for each `from` that is not part of a longer name.
std::string with_word(std::string_view text, std::string_view from, std::string_view to) {
  auto is_name = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const bool is_whole = text.substr(i).starts_with(from) && (i == 0 || !is_name(i - 1)) &&
                          (!is_name(i + from.size() - 1) || !is_name(i + from.size()));
    result += is_whole ? to : text.substr(i, 1);
    i += is_whole ? from.size() : 1;
  }
  return result;
}

}  // namespace

CudaRows::CudaRows(const ReducePlan& plan, int64_t parts)
    : rows_(plan.outer * plan.inner),
      size_(plan.count),
      parts_(parts),
      side_by_side_(plan.inner != 1),
      in_one_piece_(plan.inner == 1 && plan.reduced.empty()) {
  numbers_ = {rows_, size_};
  if (side_by_side_) {
    // As many rows as a warp reads at once, and several threads for each where that leaves them enough to do.
    while (group_ < 8 && size_ / parts_ >= group_ * 8) group_ *= 2;
    if (group_ == 8 && rows_ < 64 << 10 && size_ / parts_ >= 256) group_ = 32;
    per_block_ = group_ == 32 ? warp : usual_threads / group_;
  } else {
    share_rows();
  }
  base_ = "i64 rest = is_row ? row : 0, base = 0;\n  ";
  if (side_by_side_) {
    base_ += fmt::format("base = rest % v[{}]; rest /= v[{}];\n  ", numbers_.size(), numbers_.size());
    numbers_.push_back(plan.inner);
  }
  base_ += axes_text({plan.kept.begin(), plan.kept.end()}, "base", numbers_);
  const std::span<const ReducePlan::Axis> reduced(plan.reduced.begin(), plan.reduced.end());
  if (side_by_side_ && reduced.size() == 1) {
    offset_ = fmt::format("const i64 e = base + i * v[{}];\n  ", numbers_.size());
    numbers_.push_back(reduced[0].stride);
  } else if (reduced.empty()) {
    offset_ = "const i64 e = base + i;\n  ";
  } else {
    offset_ = "i64 e = base, rest = i;\n  ";
    if (!side_by_side_) {
      offset_ += fmt::format("e += rest % v[{}]; rest /= v[{}];\n  ", numbers_.size(), numbers_.size());
      numbers_.push_back(plan.run);
    }
    offset_ += axes_text(reduced, "e", numbers_);
  }
}

void CudaRows::share_rows() {
  const int64_t units = size_ / pack_, most_held = 32 / pack_;
  const int64_t held = rows_ >= 1024 ? most_held : pack_ == 1 ? 4 : 1;
  group_ = 1;
  while (group_ < warp && group_ < units) group_ *= 2;
  while (group_ >= warp && group_ < most_threads && units / parts_ > group_ * held) group_ *= 2;
  // Larger blocks may have too few registers for what each thread would hold.
  const bool holds = parts_ == 1 && units <= most_holding_threads * most_held;
  if (holds) group_ = std::min(group_, most_holding_threads);
  per_block_ = group_ > warp ? 1 : 128 / group_;  // more than a warp are the block
  items_ = 0;
  if (!holds) return;
  items_ = 1;
  // Few sizes have a kernel of their own.
  while (items_ * group_ < units) items_ = pack_ == 1 ? items_ * 2 : items_ + 1;
}

void CudaRows::use_packs(std::vector<Array> arrays) {
  if (!in_one_piece_ || arrays.empty()) return;
  int64_t bytes = 1;
  for (const Array& array : arrays) bytes = std::max<int64_t>(bytes, bits_of(array.type) / 8);
  pack_ = static_cast<int>(16 / bytes);
  while (pack_ > 1 && size_ % pack_ != 0) pack_ /= 2;
  arrays_ = std::move(arrays);
  share_rows();
}

std::string CudaRows::begin() const {
  std::string text = fmt::format("constexpr int GROUP = {}, PER_BLOCK = {}, DIVIDED = {}, PACK = {};\n  ", group_,
                                 per_block_, parts_ > 1 ? 1 : 0, pack_);
  if (side_by_side_)
    text +=
        "const int lane = threadIdx.x / PER_BLOCK; const i64 row = (i64)blockIdx.x * PER_BLOCK + threadIdx.x % "
        "PER_BLOCK;\n  ";
  else
    text +=
        "const int lane = threadIdx.x % GROUP; const i64 row = (i64)blockIdx.x * PER_BLOCK + threadIdx.x / GROUP;\n  ";
  text +=
      "const i64 size = v[1], part = DIVIDED ? (size + gridDim.y * PACK - 1) / (gridDim.y * PACK) * PACK : size;\n  "
      "const bool is_row = row < v[0], is_first = is_row && lane == 0;\n  " +
      base_ +
      "const i64 begin = DIVIDED ? blockIdx.y * part : 0;\n  "
      "const i64 last = !is_row ? 0 : begin + part < size ? begin + part : size;\n  ";
  if (pack_ > 1) {
    text += "const bool packs = true";
    for (const Array& array : arrays_)
      text += fmt::format(" && (u64){} % sizeof(Pack<{}, PACK>) == 0", array.name, cuda::type_text(array.type));
    text += ";\n  ";
    if (items_ == 0) return text;
    return text + fmt::format("{} held[{}][PACK];\n  ", type_, items_) +
           each_pack("", fmt::format("held[slot][p] = {};", load_));
  }
  if (items_ == 0) return text;
  return text + fmt::format(
                    "{} held[{}];\n#pragma unroll\n  for (int slot = 0; slot < {}; ++slot) {{\n  const i64 i = lane + "
                    "slot * GROUP;\n  "
                    "if (i < last) {{\n  {}held[slot] = {};\n  }} }}\n  ",
                    type_, items_, items_, offset_, load_);
}

std::string CudaRows::each_pack(std::string_view before, std::string_view body) const {
  std::string inner = fmt::format("const i64 i = first_i + p, e = first_e + p;\n  {}\n  {}", before, body);
  std::string reads, writes;
  for (const Array& array : arrays_) {
    const std::string name = fmt::format("pack_of_{}", array.name);
    std::string changed = with_word(inner, fmt::format("{}[{}]", array.name, array.index), name + ".v[p]");
    if (changed == inner) continue;
    inner = std::move(changed);
    const std::string at =
        fmt::format("{} + ({})", array.name, with_word(with_word(array.index, "e", "first_e"), "i", "first_i"));
    reads += fmt::format("Pack<{}, PACK> {};\n  ", cuda::type_text(array.type), name);
    if (array.is_written)
      writes += fmt::format("write_pack<ALIGNED>({}, {});\n  ", at, name);
    else
      reads += fmt::format("read_pack<ALIGNED>({}, {});\n  ", name, at);
  }
  const std::string work = fmt::format(
      "const i64 first_e = base + first_i;\n  {}\n#pragma unroll\n  for (int p = 0; p < PACK; ++p) {{\n  {}\n  }}\n  "
      "{}",
      reads, inner, writes);
  std::string loop;
  if (items_ == 0) {
    loop = fmt::format(
        "for (i64 first_i = begin + lane * PACK; first_i < last; first_i += GROUP * PACK) {{\n  {}}}\n  ", work);
  } else {
    // Where all threads have the same to do, nothing keeps loads from being issued together.
    const bool is_even = size_ == int64_t{items_} * group_ * pack_;
    loop = fmt::format(
        "{}\n#pragma unroll\n  for (int slot = 0; slot < {}; ++slot) {{\n  const i64 first_i = (lane + slot * GROUP) * "
        "PACK;\n  {}{{\n  {}}} }}\n  ",
        is_even ? "if (is_row)" : "", items_, is_even ? "" : "if (first_i < last) ", work);
  }
  if (reads.empty()) return loop;
  return fmt::format(
      "if (packs) {{\n  constexpr bool ALIGNED = true;\n  {}}} else {{\n  constexpr bool ALIGNED = false;\n  {}}}\n  ",
      loop, loop);
}

std::string CudaRows::each(std::string_view body) const {
  if (pack_ > 1)
    return each_pack(items_ == 0 ? fmt::format("const {} value = {};", type_, load_)
                                 : fmt::format("{}& kept = held[slot][p]; const {} value = kept;", type_, type_),
                     body);
  if (items_ == 0)
    return fmt::format("for (i64 i = begin + lane; i < last; i += GROUP) {{\n  {}const {} value = {};\n  {}\n  }}\n  ",
                       offset_, type_, load_, body);
  return fmt::format(
      "\n#pragma unroll\n  for (int slot = 0; slot < {}; ++slot) {{\n  const i64 i = lane + slot * GROUP;\n  "
      "if (i < last) {{\n  {}{}& kept = held[slot]; const {} value = kept;\n  {}\n  }} }}\n  ",
      items_, offset_, type_, type_, body);
}

std::string CudaRows::fold(std::string_view op, std::string_view value) const {
  return fmt::format("{}<GROUP, PER_BLOCK, {}>({})", side_by_side_ ? "fold_columns" : "fold_group", op, value);
}

cuda::Grid CudaRows::grid() const {
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>((rows_ + per_block_ - 1) / per_block_);
  grid.blocks[1] = static_cast<unsigned>(parts_);
  grid.threads = static_cast<unsigned>(group_ * per_block_);
  return grid;
}

std::string CudaRows::functions() {
  return R"cuda(
struct Sum {
  template <typename T> static T merge(T a, T b) { return a + b; }
};
struct Product {
  template <typename T> static T merge(T a, T b) { return a * b; }
};
struct Largest {
  template <typename T> static T merge(T a, T b) { return most(a, b); }
};
struct Smallest {
  template <typename T> static T merge(T a, T b) { return least(a, b); }
};
// A number and where it was.
template <typename T> struct Placed {
  T value;
  i64 place;
};
// The logarithm of a sum of exponentials: sum * exp(largest).
template <typename T> struct ExponentialSum {
  T largest, sum;
};
struct Exponentials {
  template <typename T> static ExponentialSum<T> merge(ExponentialSum<T> a, ExponentialSum<T> b) {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    if (a.largest > b.largest) return {a.largest, a.sum + b.sum * exp(b.largest - a.largest)};
    return {b.largest, b.sum + a.sum * exp(a.largest - b.largest)};
  }
};

// ALIGNED: it is where a pack may be.
template <bool ALIGNED, typename T, int V> inline void read_pack(Pack<T, V>& to, const T* from) {
  if (ALIGNED)
    to = *(const Pack<T, V>*)from;
  else
    for (int p = 0; p < V; ++p) to.v[p] = from[p];
}
template <bool ALIGNED, typename T, int V> inline void write_pack(T* to, const Pack<T, V>& from) {
  if (ALIGNED)
    *(Pack<T, V>*)to = from;
  else
    for (int p = 0; p < V; ++p) to[p] = from.v[p];
}

template <typename T> inline T from_lane(T x, int mask) { return (T)__shfl_xor_sync(0xffffffffu, x, mask); }
template <typename T> inline Placed<T> from_lane(Placed<T> x, int mask) {
  return {from_lane(x.value, mask), from_lane(x.place, mask)};
}
template <typename T> inline ExponentialSum<T> from_lane(ExponentialSum<T> x, int mask) {
  return {from_lane(x.largest, mask), from_lane(x.sum, mask)};
}

// GROUP threads that follow each other have a row. If that is more than a warp, they are the block.
template <int GROUP, int PER_BLOCK, typename F, typename T> inline T fold_group(T x) {
  for (int step = (GROUP < 32 ? GROUP : 32) / 2; step > 0; step /= 2) x = F::merge(x, from_lane(x, step));
  if constexpr (GROUP > 32) {
    __shared__ T parts[GROUP / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[threadIdx.x % (GROUP / 32)];
    for (int step = GROUP / 64; step > 0; step /= 2) x = F::merge(x, from_lane(x, step));
  }
  return x;
}
// PER_BLOCK rows lie side by side, and so do the threads that have them.
template <int GROUP, int PER_BLOCK, typename F, typename T> inline T fold_columns(T x) {
  if constexpr (GROUP > 1) {
    __shared__ T parts[GROUP * PER_BLOCK];
    __syncthreads();
    parts[threadIdx.x] = x;
    __syncthreads();
    x = parts[threadIdx.x % PER_BLOCK];
    for (int k = 1; k < GROUP; ++k) x = F::merge(x, parts[k * PER_BLOCK + threadIdx.x % PER_BLOCK]);
  }
  return x;
}
)cuda";
}

}  // namespace tenon::ops
