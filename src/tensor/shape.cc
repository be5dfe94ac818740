#include "tenon/shape.h"

#include "base/checked.h"

namespace tenon {

int64_t Shape::elements(int from, int to) const {
  int64_t product = 1;
  bool zero = false;
  for (int axis = from; axis < to; ++axis) {
    int64_t dim = (*this)[axis];
    if (dim < 0) fail(ErrorCode::overflow, "shape {} has a negative size", to_string());
    if (dim == 0) zero = true;
    else if (__builtin_mul_overflow(product, dim, &product)) {
      fail(ErrorCode::overflow, "shape {} has more elements than fit in 64 bits", to_string());
    }
  }
  return zero ? 0 : product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int axis = 0; axis < rank(); ++axis) {
    if (axis) text += ", ";
    text += std::to_string((*this)[axis]);
  }
  return text + "]";
}

}  // namespace tenon
