#include <type_traits>

#include "op_test.h"

namespace tenon {
namespace {

template <typename T>
Tensor counted(const Shape& shape) {
  Tensor x(element_type_of<T>, shape);
  for (size_t i = 0; i < x.mutable_data<T>().size(); ++i) {
    if constexpr (std::is_same_v<T, std::string>)
      x.mutable_data<T>()[i] = std::to_string(i);
    else
      x.mutable_data<T>()[i] = static_cast<T>(i % 251);
  }
  return x;
}

// y[i] = x[i % size], axis by axis.
template <typename T>
void expect_tiles(const Shape& shape, const std::vector<int64_t>& repeats) {
  const Tensor x = counted<T>(shape);
  Shape tiled = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) tiled[axis] *= repeats[static_cast<size_t>(axis)];
  Tensor y(element_type_of<T>, tiled), counts(ElementType::int64, Shape{shape.rank()});
  std::copy(repeats.begin(), repeats.end(), counts.mutable_data<int64_t>().begin());
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t from = 0, stride = 1, rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      from += rest % tiled[axis] % shape[axis] * stride;
      stride *= shape[axis];
      rest /= tiled[axis];
    }
    y.mutable_data<T>()[static_cast<size_t>(i)] = x.data<T>()[static_cast<size_t>(from)];
  }
  OpTest("Tile").input(x).input(counts).expect(y).run();
}

TEST(Expand, Shapes) {
  OpTest("Expand")
      .input<float>({2, 1}, {1, 2})
      .input<int64_t>({3}, {2, 1, 2})
      .expect<float>({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2})
      .run();
  OpTest("Expand").input<float>({2, 1}, {1, 2}).constant<int64_t>({1}, {1}).expect<float>({2, 1}, {1, 2}).run();
  OpTest("Expand", 8)
      .input<std::string>({}, {"a"})
      .constant<int64_t>({1}, {2})
      .expect<std::string>({2}, {"a", "a"})
      .run();
  OpTest("Expand").input<float>({1}, {1}).constant<int64_t>({2}, {0, 3}).expect<float>({0, 3}, {}).run();
  EXPECT_NE(OpTest("Expand")
                .input<float>({2}, {1, 2})
                .constant<int64_t>({1}, {3})
                .error()
                .find("cannot be broadcast: 2 against 3"),
            std::string::npos);
}

TEST(Tile, Repeats) {
  OpTest("Tile")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2}, {1, 2})
      .expect<float>({2, 4}, {1, 2, 1, 2, 3, 4, 3, 4})
      .run();
  OpTest("Tile", 6)
      .input<int8_t>({1, 2}, {1, 2})
      .input<int64_t>({2}, {2, 2})
      .expect<int8_t>({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2})
      .run();
  OpTest("Tile").input<float>({2}, {1, 2}).input<int64_t>({1}, {0}).expect<float>({0}, {}).run();
  EXPECT_NE(OpTest("Tile")
                .input<float>({2}, {1, 2})
                .constant<int64_t>({1}, {-1})
                .error()
                .find("axis 0 cannot be repeated -1 times"),
            std::string::npos);
}

// Rows of every length up to some vectors, few and many of them.
TEST(Tile, RowsOfAnyLength) {
  for (int64_t size : {1, 2, 3, 5, 7, 8, 11, 15, 16, 17, 28, 31, 33, 64, 70, 257}) {
    expect_tiles<uint8_t>({3, size}, {1, 3});
    expect_tiles<uint8_t>({2, size}, {2, 20});
    expect_tiles<float16>({3, size}, {2, 2});
    expect_tiles<float>({2, 3, size}, {1, 2, 2});
    expect_tiles<int64_t>({2, 2, size}, {3, 1, 9});
    expect_tiles<std::string>({2, 2, size}, {2, 2, 2});
  }
  expect_tiles<float>({3, 5, 1, 3}, {2, 3, 40, 2});
  expect_tiles<int32_t>({2, 12345}, {3, 2});
  expect_tiles<double>({100, 1, 7}, {2, 50, 2});
}

TEST(Tile, Version1RepeatsOneAxis) {
  OpTest("Tile", 1)
      .input<float>({2, 1}, {1, 2})
      .input<float>({}, {2})
      .input<float>({}, {1})
      .expect<float>({2, 2}, {1, 1, 2, 2})
      .run();
}

}  // namespace
}  // namespace tenon
