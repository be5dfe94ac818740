#include "tenon/shape.h"

#include "base/checked.h"

namespace tenon {
namespace {

// No operator has a use for more; loops over the axes may be quadratic in them.
constexpr int most_axes = 64;

// An empty tensor needs no memory that a limit could refuse, but its other sizes still make loops and products.
constexpr int64_t most_beside_zero = int64_t{1} << 40;

}  // namespace

int64_t Shape::elements(int from, int to) const {
  if (rank() > most_axes)
    fail(ErrorCode::unsupported, "a tensor of {} axes is not supported; at most {} are", rank(), most_axes);
  int64_t product = 1;
  bool zero = false;
  for (int axis = from; axis < to; ++axis) {
    int64_t dim = (*this)[axis];
    if (dim < 0) fail(ErrorCode::overflow, "shape {} has a negative size", to_string());
    if (dim == 0)
      zero = true;
    else if (__builtin_mul_overflow(product, dim, &product)) {
      fail(ErrorCode::overflow, "shape {} has more elements than fit in 64 bits", to_string());
    }
  }
  if (zero && product > most_beside_zero)
    fail(ErrorCode::overflow, "the sizes of the empty shape {} are too large", to_string());
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
