#pragma once

#include <vector>

#include "tenon/tensor.h"

namespace tenon::tools {

// Tensors in a temporary file: any number of them takes next to no memory.
class TensorStore {
 public:
  // Throws ErrorCode::write_failed.
  TensorStore();
  ~TensorStore();
  TensorStore(const TensorStore&) = delete;
  TensorStore& operator=(const TensorStore&) = delete;

  // The number by which the tensor, which holds no strings, can be read.
  size_t add(const Tensor& tensor);
  Tensor read(size_t number) const;
  int64_t bytes() const { return end_; }

 private:
  struct Place {
    ElementType type;
    Shape shape;
    int64_t offset;
  };
  int file_ = -1;
  int64_t end_ = 0;
  std::vector<Place> places_;
};

}  // namespace tenon::tools
