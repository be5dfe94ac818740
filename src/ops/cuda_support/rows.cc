#include "ops/cuda_support/rows.h"

#include <algorithm>

namespace tenon::ops {
namespace {

constexpr int warp = 32, most_threads = 1024, usual_threads = 256;

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

}  // namespace

CudaRows::CudaRows(const ReducePlan& plan, int64_t parts)
    : rows_(plan.outer * plan.inner), size_(plan.count), parts_(parts), side_by_side_(plan.inner != 1) {
  numbers_ = {rows_, size_};
  if (side_by_side_) {
    // As many rows as a warp reads at once, and several threads for each where that leaves them enough to do.
    while (group_ < 8 && size_ / parts_ >= group_ * 8) group_ *= 2;
    if (group_ == 8 && rows_ < 64 << 10 && size_ / parts_ >= 256) group_ = 32;
    per_block_ = group_ == 32 ? warp : usual_threads / group_;
  } else {
    while (group_ < warp && group_ < size_) group_ *= 2;
    const int64_t held = rows_ >= 1024 ? 32 : 4;
    while (group_ >= warp && group_ < most_threads && size_ / parts_ > group_ * held) group_ *= 2;
    per_block_ = group_ > warp ? 1 : 128 / group_;  // more than a warp are the block
    if (parts_ == 1) {
      items_ = 1;
      while (items_ * group_ < size_) items_ *= 2;
      if (items_ > 32) items_ = 0;
    }
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

std::string CudaRows::begin() const {
  std::string text = fmt::format("constexpr int GROUP = {}, PER_BLOCK = {}, DIVIDED = {};\n  ", group_, per_block_,
                                 parts_ > 1 ? 1 : 0);
  if (side_by_side_)
    text +=
        "const int lane = threadIdx.x / PER_BLOCK; const i64 row = (i64)blockIdx.x * PER_BLOCK + threadIdx.x % "
        "PER_BLOCK;\n  ";
  else
    text +=
        "const int lane = threadIdx.x % GROUP; const i64 row = (i64)blockIdx.x * PER_BLOCK + threadIdx.x / GROUP;\n  ";
  text +=
      "const i64 size = v[1], part = DIVIDED ? (size + gridDim.y - 1) / gridDim.y : size;\n  "
      "const bool is_row = row < v[0], is_first = is_row && lane == 0;\n  " +
      base_ +
      "const i64 begin = DIVIDED ? blockIdx.y * part : 0;\n  "
      "const i64 last = !is_row ? 0 : begin + part < size ? begin + part : size;\n  ";
  if (items_ == 0) return text;
  return text + fmt::format(
                    "{} held[{}];\n#pragma unroll\n  for (int slot = 0; slot < {}; ++slot) {{\n  const i64 i = lane + "
                    "slot * GROUP;\n  "
                    "if (i < last) {{\n  {}held[slot] = {};\n  }} }}\n  ",
                    type_, items_, items_, offset_, load_);
}

std::string CudaRows::each(std::string_view body) const {
  if (items_ == 0)
    return fmt::format("for (i64 i = begin + lane; i < last; i += GROUP) {{\n  {}const {} value = {};\n  {}\n  }}\n  ",
                       offset_, type_, load_, body);
  return fmt::format(
      "\n#pragma unroll\n  for (int slot = 0; slot < {}; ++slot) {{\n  const i64 i = lane + slot * GROUP;\n  "
      "if (i < last) {{\n  {}const {} value = held[slot];\n  {}\n  }} }}\n  ",
      items_, offset_, type_, body);
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
