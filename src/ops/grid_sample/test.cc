#include <algorithm>

#include "op_test.h"

namespace tenon {
namespace {

OpTest sample(const char* mode, const char* padding, int64_t opset = ops::newest_opset) {
  OpTest test("GridSample", opset);
  test.attribute("mode", mode).attribute("padding_mode", padding).attribute("align_corners", 1);
  return test;
}

TEST(GridSample, Modes) {
  sample("linear", "zeros")
      .input<float>({1, 1, 3}, {1, 2, 4})
      .input<float>({1, 3, 1}, {-1, 0.5f, 1.5f})
      .expect<float>({1, 1, 3}, {1, 3, 2})
      .run();
  sample("linear", "border")
      .input<float>({1, 1, 3}, {1, 2, 4})
      .input<float>({1, 2, 1}, {-3, 1.5f})
      .expect<float>({1, 1, 2}, {1, 4})
      .run();
  sample("linear", "reflection")
      .input<float>({1, 1, 3}, {1, 2, 4})
      .input<float>({1, 2, 1}, {-1.5f, 2})
      .expect<float>({1, 1, 2}, {1.5f, 2})
      .run();
  sample("nearest", "zeros")
      .input<std::string>({1, 1, 2}, {"a", "b"})
      .input<float>({1, 3, 1}, {-1, 1, 4})
      .expect<std::string>({1, 1, 3}, {"a", "b", ""})
      .run();
  sample("bilinear", "zeros", 16)
      .input<double>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<double>({1, 1, 1, 2}, {0, 0})
      .expect<double>({1, 1, 1, 1}, {2.5})
      .run();
  // Of a line, two elements and no others: the first one is infinite.
  sample("linear", "zeros")
      .input<float>({1, 1, 4}, {INFINITY, 2, 4, 8})
      .input<float>({1, 2, 1}, {0, 1})
      .expect<float>({1, 1, 2}, {3, 8})
      .run();
  sample("linear", "border")
      .input<float>({1, 1, 1}, {5})
      .input<float>({1, 2, 1}, {NAN, INFINITY})
      .expect<float>({1, 1, 2}, {5, 5})
      .run();
}

// Points between four pixels, at the right and the lower edge, outside, and in pictures of one row or column.
template <typename T>
void test_pictures() {
  const auto values = [](const Shape& shape, std::initializer_list<float> list) {
    Tensor tensor(element_type_of<T>, shape);
    std::transform(list.begin(), list.end(), tensor.template mutable_data<T>().begin(),
                   [](float value) { return static_cast<T>(value); });
    return tensor;
  };
  sample("linear", "zeros")
      .input(values({1, 3, 2, 3}, {4, 8, 16, 12, 16, 24, 8, 16, 32, 24, 32, 48, 0, 4, 8, 4, 8, 12}))
      .template input<float>({1, 1, 5, 2}, {-0.5f, 0, 0.5f, -0.5f, 1, 1, 1, 0, 1.5f, -1})
      .expect(values({1, 3, 1, 5}, {10, 14, 24, 20, 8, 20, 28, 48, 40, 16, 4, 7, 12, 10, 4}))
      .run();
  sample("linear", "border")
      .input(values({1, 1, 1, 2}, {2, 6}))
      .template input<float>({1, 1, 2, 2}, {0, 0, 3, 5})
      .expect(values({1, 1, 1, 2}, {4, 6}))
      .run();
  sample("linear", "reflection")
      .input(values({1, 1, 2, 1}, {2, 6}))
      .template input<float>({1, 1, 2, 2}, {0, 0, 0, 1})
      .expect(values({1, 1, 1, 2}, {4, 6}))
      .run();
}

TEST(GridSample, Pictures) {
  test_pictures<float>();
  test_pictures<double>();
  test_pictures<float16>();
  test_pictures<int32_t>();
  test_pictures<uint8_t>();
}

TEST(AffineGrid, Identity) {
  OpTest("AffineGrid")
      .attribute("align_corners", 1)
      .input<float>({1, 2, 3}, {1, 0, 0, 0, 1, 0})
      .input<int64_t>({4}, {1, 1, 2, 2})
      .expect<float>({1, 2, 2, 2}, {-1, -1, 1, -1, -1, 1, 1, 1})
      .run();
  OpTest("AffineGrid")
      .input<double>({1, 2, 3}, {0, 2, 1, 1, 0, 0})
      .constant<int64_t>({4}, {1, 1, 1, 2})
      .expect<double>({1, 1, 2, 2}, {1, -0.5, 1, 0.5})
      .run();
}

// Planes that no second cache holds. An element is its row, and its negative in the third channel; points are the
// centers of rows and, the last ones, beside the picture.
TEST(GridSample, LargePictures) {
  constexpr int64_t size = 1025, points = 75;
  Tensor x(ElementType::float32, Shape{1, 3, size, size}), grid(ElementType::float32, Shape{1, 1, points, 2}),
      y(ElementType::float32, Shape{1, 3, 1, points});
  for (int64_t i = 0; i < 3 * size * size; ++i) {
    const auto row = static_cast<float>(i / size % size);
    x.mutable_data<float>()[static_cast<size_t>(i)] = i < 2 * size * size ? row : -row;
  }
  for (int64_t i = 0; i < points; ++i) {
    const int64_t row = i * 613 % size;
    const bool is_inside = i + 5 < points;
    const auto at = static_cast<size_t>(i);
    grid.mutable_data<float>()[2 * at] = is_inside ? 0.25f : 2.0f;
    grid.mutable_data<float>()[2 * at + 1] = static_cast<float>(2 * row) / (size - 1) - 1;
    for (size_t c = 0; c < 3; ++c)
      y.mutable_data<float>()[c * points + at] = is_inside ? static_cast<float>(c < 2 ? row : -row) : 0.0f;
  }
  sample("linear", "zeros").input(x).input(grid).expect(y).run();
}

TEST(GridSample, TooManyAxes) {
  Tensor x(ElementType::float32, Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}),
      grid(ElementType::float32, Shape{1, 1, 1, 1, 1, 1, 1, 1, 7});
  std::string error = OpTest("GridSample").input(x).input(grid).expect(x).error();
  EXPECT_TRUE(error.starts_with("unsupported in GridSample 'tested' (node 0): sampling over 7 spatial axes")) << error;
}

}  // namespace
}  // namespace tenon
