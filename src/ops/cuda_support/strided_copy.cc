#include "ops/cuda_support/strided_copy.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

struct Axis {
  int64_t size, from, to;
};

// Axes that have more than one element; those that go on evenly in both arrangements are one.
std::vector<Axis> collapse(const Shape& shape, std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<Axis> axes;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (shape[i] == 1) continue;
    const Axis axis{shape[i], from[at], to[at]};
    if (!axes.empty() && axes.back().from == axis.from * axis.size && axes.back().to == axis.to * axis.size)
      axes.back() = {axes.back().size * axis.size, axis.from, axis.to};
    else
      axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back({1, 0, 0});
  return axes;
}

constexpr int tile = 32;

// Makes `count` elements that lie side by side in both arrangements one, if all axes allow that.
bool pack(std::vector<Axis>& axes, int64_t count) {
  const Axis last = axes.back();
  if (last.from != 1 || last.to != 1 || last.size % count != 0) return false;
  const auto others = std::span(axes).first(axes.size() - 1);
  if (std::ranges::any_of(others, [&](const Axis& axis) { return axis.from % count != 0 || axis.to % count != 0; }))
    return false;
  for (Axis& axis : others) axis = {axis.size, axis.from / count, axis.to / count};
  axes.back().size /= count;
  return true;
}

// A thread for each element. Numbers of 32 bits are divided far faster than those of 64.
CudaLoop loop_over(KernelRun& run, const std::vector<Axis>& axes, std::string_view element) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  const std::string_view index = index_text(count);
  std::vector<int64_t> numbers;
  std::string body = fmt::format("{} rest = ({})i;\n    i64 a = 0, b = 0;\n    ", index, index);
  for (size_t i = axes.size(); i-- > 0;) {
    const size_t at = numbers.size();
    numbers.insert(numbers.end(), {axes[i].size, axes[i].from, axes[i].to});
    const std::string step = fmt::format("a += c * v[{}]; b += c * v[{}];", at + 1, at + 2);
    if (i == 0)
      body += fmt::format("{{ const {} c = rest; {} }}\n    ", index, step);
    else
      body += fmt::format("{{ const {} size = ({})v[{}], c = rest % size; rest /= size; {} }}\n    ", index, index, at,
                          step);
  }
  body += "to[b] = from[a];";
  return {run, count, fmt::format("const {}* from, {}* to", element, element), body, std::move(numbers)};
}

// Few planes whose elements go side by side, as the channels of an image do: a thread reads 16 bytes of each plane.
// Without a value where that is not so.
std::optional<CudaLoop> interleave(KernelRun& run, const std::vector<Axis>& axes, ElementType type) {
  constexpr int64_t most_planes = 7;
  const int64_t pack = 128 / bits_of(type);
  if (axes.size() < 2 || axes.size() > 3 || pack < 2) return std::nullopt;
  const Axis planes = axes.back(), row = axes[axes.size() - 2], images = axes.size() == 3 ? axes[0] : Axis{1, 0, 0};
  if (planes.size > most_planes || planes.to != 1 || row.from != 1 || row.to != planes.size || row.size % pack != 0 ||
      planes.from % pack != 0 || images.from % pack != 0 || images.to % pack != 0)
    return std::nullopt;
  const int64_t packs = row.size / pack;
  return CudaLoop(run, images.size * packs, fmt::format("const {0}* from, {0}* to", moved_type_text(type)),
                  fmt::format("const {index} image = ({index})i / ({index})v[0], at = ({index})i % ({index})v[0];\n    "
                              "Some in[{planes}], out[{planes}];\n    for (int p = 0; p < {planes}; ++p) "
                              "in[p] = ((const Some*)from)[image * v[1] + p * v[2] + at];\n    "
                              "#pragma unroll\n    for (int e = 0; e < {all}; ++e) "
                              "out[e / {pack}].v[e % {pack}] = in[e % {planes}].v[e / {planes}];\n    "
                              "for (int p = 0; p < {planes}; ++p) "
                              "((Some*)to)[image * v[3] + at * {planes} + p] = out[p];",
                              fmt::arg("index", index_text(images.size * packs)), fmt::arg("planes", planes.size),
                              fmt::arg("pack", pack), fmt::arg("all", planes.size * pack)),
                  {packs, images.from / pack, planes.from / pack, images.to / pack},
                  fmt::format("typedef Pack<{}, {}> Some;", moved_type_text(type), pack));
}

}  // namespace

std::string_view moved_type_text(ElementType type) {
  switch (bits_of(type)) {
    case 8:
      return "u8";
    case 16:
      return "u16";
    case 32:
      return "u32";
    case 64:
      return "u64";
    case 128:
      return "c128";
    default:
      fail(ErrorCode::internal, "elements of {} have no whole bytes", name_of(type));
  }
}

std::vector<int64_t> steps_of(const Shape& shape) {
  std::vector<int64_t> steps(static_cast<size_t>(shape.rank()));
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    steps[static_cast<size_t>(axis)] = step;
    step *= shape[axis];
  }
  return steps;
}

const void* address_at(const Tensor& tensor, int64_t element) {
  return static_cast<const std::byte*>(tensor.raw()) + element * bits_of(tensor.type()) / 8;
}
void* address_at(Tensor& tensor, int64_t element) {
  return static_cast<std::byte*>(tensor.mutable_raw()) + element * bits_of(tensor.type()) / 8;
}

CudaStridedCopy::CudaStridedCopy(KernelRun& run, ElementType type, const Shape& shape, std::span<const int64_t> from,
                                 std::span<const int64_t> to) {
  if (shape.elements() == 0) return;
  std::vector<Axis> axes = collapse(shape, from, to);
  const std::string_view element = moved_type_text(type);
  // The axis that is dense in the source, if another one is in the destination.
  auto dense = std::ranges::find_if(axes, [](const Axis& axis) { return axis.from == 1; });
  if (dense != axes.end() && axes.back().to == 1 && axes.back().from != 1 && dense->size >= 8 &&
      axes.back().size >= 8) {
    const Axis rows = *dense, columns = axes.back();
    axes.erase(dense);
    axes.pop_back();
    std::vector<int64_t> numbers{rows.size, rows.to, columns.size, columns.from};
    int64_t others = 1;
    std::string offsets = "i64 rest = blockIdx.y + (i64)gridDim.y * blockIdx.z, a = 0, b = 0;\n  ";
    for (size_t i = axes.size(); i-- > 0;) {
      const size_t at = numbers.size();
      numbers.insert(numbers.end(), {axes[i].size, axes[i].from, axes[i].to});
      offsets += fmt::format("{{ const i64 c = rest % v[{}]; rest /= v[{}]; a += c * v[{}]; b += c * v[{}]; }}\n  ", at,
                             at, at + 1, at + 2);
      others *= axes[i].size;
    }
    const int64_t across = (columns.size + tile - 1) / tile, down = (rows.size + tile - 1) / tile;
    cuda::Grid grid;
    grid.threads = 256;
    grid.blocks[0] = static_cast<unsigned>(across * down);
    grid.blocks[1] = static_cast<unsigned>(std::min<int64_t>(others, 32768));
    grid.blocks[2] = static_cast<unsigned>((others + 32767) / 32768);
    numbers.push_back(across);
    numbers.push_back(others);
    if (across * down < int64_t{1} << 31 && (others + 32767) / 32768 < 65536) {
      const std::string body = fmt::format(
          "{}if (blockIdx.y + (i64)gridDim.y * blockIdx.z >= v[{}]) return;\n"
          "  __shared__ {} held[{}][{}];\n"
          "  const i64 row = blockIdx.x / v[{}] * {}, column = blockIdx.x % v[{}] * {};\n"
          "  const int x = threadIdx.x % {}, y = threadIdx.x / {};\n"
          "  for (int k = y; k < {}; k += 8)\n"
          "    if (row + x < v[0] && column + k < v[2]) held[k][x] = from[a + row + x + (column + k) * v[3]];\n"
          "  __syncthreads();\n"
          "  for (int k = y; k < {}; k += 8)\n"
          "    if (row + k < v[0] && column + x < v[2]) to[b + (row + k) * v[1] + column + x] = held[x][k];",
          offsets, numbers.size() - 1, element, tile, tile + 1, numbers.size() - 2, tile, numbers.size() - 2, tile,
          tile, tile, tile, tile);
      tiles_.emplace(run, fmt::format("const {}* from, {}* to", element, element), "", body, numbers, grid);
      return;
    }
    axes = collapse(shape, from, to);
  }
  loop_.emplace(loop_over(run, axes, element));
  packs_ = interleave(run, axes, type);
  pack_bytes_ = 16;
  if (packs_) return;
  const int64_t bytes = bits_of(type) / 8;
  for (pack_bytes_ = 16; pack_bytes_ > bytes; pack_bytes_ /= 2) {
    if (!pack(axes, pack_bytes_ / bytes)) continue;
    packs_.emplace(loop_over(run, axes, pack_bytes_ == 16 ? "Pack<u64, 2>" : fmt::format("u{}", 8 * pack_bytes_)));
    break;
  }
}

void CudaStridedCopy::run(KernelRun& run, const void* from, void* to) const {
  const auto addresses = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  if (tiles_)
    tiles_->run(run, {from, to});
  else if (packs_ && addresses % static_cast<uintptr_t>(pack_bytes_) == 0)
    packs_->run(run, {from, to});
  else if (loop_)
    loop_->run(run, {from, to});
}

}  // namespace tenon::ops
