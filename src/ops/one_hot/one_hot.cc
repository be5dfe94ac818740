#include "ops/one_hot/one_hot.h"

#include "ops/dispatch.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {

int64_t number_at(const Tensor& tensor, int64_t index) {
  int64_t result = 0;
  dispatch<float, double, float16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      tensor.type(), [&]<typename T>() {
        T value = tensor.data<T>()[static_cast<size_t>(index)];
        if constexpr (std::is_integral_v<T>) {
          if constexpr (std::is_same_v<T, uint64_t>) value = std::min<T>(value, INT64_MAX);
          result = static_cast<int64_t>(value);
        } else {
          using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
          auto number = static_cast<double>(static_cast<Wide>(value));
          result = number >= -0x1p62 && number <= 0x1p62 ? static_cast<int64_t>(number) : INT64_MAX;
        }
      });
  return result;
}

namespace {

void infer_one_hot(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(2), std::nullopt);
  Dim depth = Dim::unknown();
  if (const Tensor* constant = i.constant(1)) {
    if (constant->elements() != 1) i.fail("depth must be one number, it has {}", constant->elements());
    depth = Dim(number_at(*constant, 0));
  } else if (auto values = i.values(1); values && values->size() == 1) {
    depth = (*values)[0];
  }
  if (depth.is_known() && depth.value() < 0) i.fail("depth is {}", depth.value());
  SymbolicShape result = i.shape(0);
  int axis = i.axis(i.node().int_attribute("axis", -1), i.rank(0) + 1);
  result.insert(result.begin() + axis, std::move(depth));
  i.output(0, i.element(2), std::move(result));
}

}  // namespace

void define_one_hot(OperatorList& list) {
  constexpr TypeSet index_types = types::numbers - TypeSet{ElementType::bfloat16};
  list.add("OneHot", {9, 11, 28})
      .input("indices", index_types)
      .input("depth", index_types)
      .input("values", "T3")
      .output("output", "T3")
      .types("T3", types::movable)
      .attribute("axis", ir::AttributeKind::int_)
      .infer(infer_one_hot);
}

}  // namespace tenon::ops
