#include "cuda/tensor_map.h"

#include <algorithm>

namespace tenon::cuda {

TensorMap tensor_map(const Gpu& gpu, const void* address, std::span<const int64_t> sizes, std::span<const int64_t> box,
                     bool mixed) {
  // As the driver numbers them.
  constexpr int elements_of_16_bits = 1, plain_order = 0, places_of_128_bytes = 3, fetches_128_bytes = 2,
                zeros_outside = 0;
  constexpr size_t most_axes = 5;
  uint64_t all[most_axes] = {}, steps[most_axes] = {};
  uint32_t boxes[most_axes] = {}, each[most_axes] = {};
  uint64_t step = 2;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    all[axis] = static_cast<uint64_t>(sizes[axis]);
    boxes[axis] = static_cast<uint32_t>(box[axis]);
    each[axis] = 1;
    step *= all[axis];
    steps[axis] = step;  // to the next one of the axis that follows
  }
  TensorMap map;
  gpu.use();
  gpu.check(gpu.api().cuTensorMapEncodeTiled(&map, elements_of_16_bits, static_cast<unsigned>(sizes.size()),
                                             const_cast<void*>(address), all, steps, boxes, each, plain_order,
                                             mixed ? places_of_128_bytes : 0, fetches_128_bytes, zeros_outside),
            "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace tenon::cuda
