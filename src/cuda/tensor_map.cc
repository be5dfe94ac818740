#include "cuda/tensor_map.h"

#include <algorithm>

namespace tenon::cuda {
namespace {

// As the driver numbers them.
constexpr int elements_of_16_bits = 1, plain_order = 0, places_of_128_bytes = 3, fetches_128_bytes = 2,
              zeros_outside = 0;
constexpr size_t most_axes = 5;

// A tensor's sizes, and how many bytes it is to the next one of the axis that follows each.
struct Extents {
  uint64_t sizes[most_axes] = {}, steps[most_axes] = {};

  explicit Extents(std::span<const int64_t> given) {
    uint64_t step = 2;
    for (size_t axis = 0; axis < given.size(); ++axis) {
      sizes[axis] = static_cast<uint64_t>(given[axis]);
      step *= sizes[axis];
      steps[axis] = step;
    }
  }
  Extents(std::span<const int64_t> given, std::span<const int64_t> elements) : Extents(given) {
    for (size_t axis = 0; axis < elements.size(); ++axis) steps[axis] = static_cast<uint64_t>(elements[axis]) * 2;
  }
};

TensorMap map_of(const Gpu& gpu, const void* address, size_t axes, const Extents& all, std::span<const int64_t> box,
                 bool mixed) {
  uint32_t boxes[most_axes] = {}, each[most_axes] = {};
  for (size_t axis = 0; axis < axes; ++axis) {
    boxes[axis] = static_cast<uint32_t>(box[axis]);
    each[axis] = 1;
  }
  TensorMap map;
  gpu.use();
  gpu.check(gpu.api().cuTensorMapEncodeTiled(&map, elements_of_16_bits, static_cast<unsigned>(axes),
                                             const_cast<void*>(address), all.sizes, all.steps, boxes, each, plain_order,
                                             mixed ? places_of_128_bytes : 0, fetches_128_bytes, zeros_outside),
            "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace

TensorMap tensor_map(const Gpu& gpu, const void* address, std::span<const int64_t> sizes, std::span<const int64_t> box,
                     bool mixed) {
  return map_of(gpu, address, sizes.size(), Extents(sizes), box, mixed);
}

TensorMap tensor_map(const Gpu& gpu, const void* address, std::span<const int64_t> sizes,
                     std::span<const int64_t> steps, std::span<const int64_t> box, bool mixed) {
  return map_of(gpu, address, sizes.size(), Extents(sizes, steps), box, mixed);
}

TensorMap window_map(const Gpu& gpu, const void* address, std::span<const int64_t, 4> sizes, const Windows& windows,
                     int64_t windows_of_box) {
  constexpr unsigned channels = 64;
  const Extents all(sizes);
  // From where the first window begins to where the last one does, counted from the ends of an image.
  int first[2] = {}, last[2] = {};
  uint32_t strides[4] = {1, 1, 1, 1};
  for (size_t axis = 0; axis < 2; ++axis) {
    first[axis] = static_cast<int>(-windows.pads_begin[axis]);
    last[axis] = static_cast<int>(windows.pads_end[axis] - (windows.kernel[axis] - 1) * windows.dilations[axis]);
    strides[axis + 1] = static_cast<uint32_t>(windows.strides[axis]);
  }
  TensorMap map;
  gpu.use();
  gpu.check(
      gpu.api().cuTensorMapEncodeIm2col(&map, elements_of_16_bits, 4, const_cast<void*>(address), all.sizes, all.steps,
                                        first, last, channels, static_cast<unsigned>(windows_of_box), strides,
                                        plain_order, places_of_128_bytes, fetches_128_bytes, zeros_outside),
      "cuTensorMapEncodeIm2col");
  return map;
}

}  // namespace tenon::cuda
