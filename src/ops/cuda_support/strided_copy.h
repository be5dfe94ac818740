// Copies elements from one arrangement to another.
#pragma once

#include <optional>

#include "ops/cuda_support/loop.h"

namespace tenon::ops {

// Element types that have whole bytes.
inline constexpr TypeSet cuda_movable = types::numbers | types::bools | types::complexes | types::float8s;

// Copies `shape` elements, which lie `from` elements apart along each axis of the source (0: the same one again) and
// `to` apart in the destination. A tile of both goes through shared memory where neither is read in its own order.
class CudaStridedCopy {
 public:
  CudaStridedCopy(KernelRun& run, ElementType type, const Shape& shape, std::span<const int64_t> from,
                  std::span<const int64_t> to);
  // From and to the first element.
  void run(KernelRun& run, const void* from, void* to) const;

 private:
  std::optional<CudaLoop> loop_, packs_;  // one element at a time, or as many as fit into pack_bytes_
  int64_t pack_bytes_ = 0;
  std::optional<CudaBlocks> tiles_;
};

// An unsigned type of as many bytes, to move elements with: "u32".
std::string_view moved_type_text(ElementType type);

// Steps between elements along each axis of a dense tensor.
std::vector<int64_t> steps_of(const Shape& shape);

// The address of an element.
const void* address_at(const Tensor& tensor, int64_t element);
void* address_at(Tensor& tensor, int64_t element);

}  // namespace tenon::ops
