#include "session/growth.h"

#include "base/checked.h"

namespace tenon {

void Growth::note(const Plan& before, std::span<const Value* const> arguments) {
  std::vector<Shape> steps(arguments.size());
  bool is_growth = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i] || !arguments[i]->is_tensor()) continue;
    const Shape &now = arguments[i]->tensor().shape(), &then = before.arguments[i].shape;
    if (now == then || now.rank() != then.rank()) continue;
    for (int axis = 0; axis < now.rank(); ++axis) steps[i].push_back(now[axis] - then[axis]);
    is_growth = true;
  }
  is_steady_ = is_growth && steps == steps_;
  steps_ = std::move(steps);
}

bool Growth::find_next(const std::vector<Value>& now, std::vector<Value>& next) const {
  next = now;
  for (size_t i = 0; i < now.size(); ++i) {
    if (steps_[i].rank() == 0) continue;
    const Tensor& tensor = now[i].tensor();
    Shape shape = tensor.shape();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      shape[axis] = checked_add(shape[axis], steps_[i][axis]);
      if (shape[axis] < 0) return false;
    }
    next[i] = Tensor::over(tensor.type(), shape, nullptr);
  }
  return true;
}

}  // namespace tenon
