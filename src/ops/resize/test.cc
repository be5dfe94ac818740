#include "op_test.h"

namespace tenon {
namespace {

OpTest resize(const char* mode, int64_t opset = ops::newest_opset) {
  OpTest test("Resize", opset);
  test.attribute("mode", mode);
  return test;
}

TEST(Resize, Nearest) {
  resize("nearest")
      .input<float>({1, 1, 1, 2}, {1, 2})
      .no_input()
      .constant<float>({4}, {1, 1, 2, 2})
      .expect<float>({1, 1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2})
      .run();
  resize("nearest")
      .input<int64_t>({3}, {1, 2, 3})
      .no_input()
      .no_input()
      .input<int64_t>({1}, {2})
      .expect<int64_t>({2}, {1, 3})
      .run();
  resize("nearest")
      .attribute("nearest_mode", "floor")
      .attribute("coordinate_transformation_mode", "asymmetric")
      .input<std::string>({2}, {"a", "b"})
      .no_input()
      .input<float>({1}, {1.5f})
      .expect<std::string>({3}, {"a", "a", "b"})
      .run();
  resize("nearest")
      .attribute("axes", {-1})
      .input<float>({2, 1}, {1, 2})
      .no_input()
      .no_input()
      .input<int64_t>({1}, {2})
      .expect<float>({2, 2}, {1, 1, 2, 2})
      .run();
}

template <typename T>
void expect_nearest(int64_t height, int64_t width, int64_t down, int64_t across) {
  Tensor x(element_type_of<T>, Shape{2, height, width}), y(element_type_of<T>, Shape{2, height * down, width * across});
  for (size_t i = 0; i < x.mutable_data<T>().size(); ++i) x.mutable_data<T>()[i] = static_cast<T>(i % 251);
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t column = i % (width * across) / across, row = i / (width * across) / down;
    y.mutable_data<T>()[static_cast<size_t>(i)] = x.data<T>()[static_cast<size_t>(row * width + column)];
  }
  const Tensor scales(Shape{3}, {1.0f, static_cast<float>(down), static_cast<float>(across)});
  resize("nearest")
      .attribute("coordinate_transformation_mode", "asymmetric")
      .attribute("nearest_mode", "floor")
      .input(x)
      .no_input()
      .constant(scales)
      .expect(y)
      .run();
}

TEST(Resize, NearestOfWholeNumbers) {
  for (int64_t width : {1, 3, 4, 7, 9, 16, 21, 35}) {
    expect_nearest<float>(3, width, 2, 2);
    expect_nearest<float>(3, width, 3, 2);
    expect_nearest<uint8_t>(2, width, 1, 2);
    expect_nearest<int64_t>(2, width, 5, 2);
    expect_nearest<double>(2, width, 2, 1);
    expect_nearest<float>(2, width, 2, 3);
  }
}

// Elements of the last axis that stay side by side, as the channels of a block do.
TEST(Resize, NearestOfBlocks) {
  for (int64_t size : {8, 16, 5}) {
    Tensor x(ElementType::float32, Shape{1, 2, 2, 3, size}), y(ElementType::float32, Shape{1, 2, 4, 6, size});
    float next = 0;
    for (float& number : x.mutable_data<float>()) number = next++;
    for (int64_t i = 0; i < y.elements(); ++i) {
      const int64_t lane = i % size, column = i / size % 6, row = i / size / 6 % 4, block = i / size / 24;
      y.mutable_data<float>()[static_cast<size_t>(i)] =
          x.data<float>()[static_cast<size_t>(((block * 2 + row / 2) * 3 + column / 2) * size + lane)];
    }
    resize("nearest").input(x).no_input().constant<float>({5}, {1, 1, 2, 2, 1}).expect(y).run();
  }
}

TEST(Resize, Linear) {
  resize("linear")
      .input<float>({1, 1, 2, 2}, {1, 2, 3, 4})
      .no_input()
      .input<float>({4}, {1, 1, 2, 2})
      .expect<float>({1, 1, 4, 4},
                     {1, 1.25f, 1.75f, 2, 1.5f, 1.75f, 2.25f, 2.5f, 2.5f, 2.75f, 3.25f, 3.5f, 3, 3.25f, 3.75f, 4})
      .run();
  resize("linear")
      .attribute("coordinate_transformation_mode", "align_corners")
      .input<double>({2}, {1, 2})
      .no_input()
      .no_input()
      .input<int64_t>({1}, {3})
      .expect<double>({3}, {1, 1.5, 2})
      .run();
  resize("linear")
      .input<uint8_t>({2}, {10, 20})
      .no_input()
      .no_input()
      .input<int64_t>({1}, {4})
      .expect<uint8_t>({4}, {10, 12, 17, 20})
      .run();
  resize("linear")
      .input<float>({2, 1, 1}, {1, 3})
      .no_input()
      .no_input()
      .input<int64_t>({3}, {1, 2, 1})
      .expect<float>({1, 2, 1}, {2, 2})
      .run();
  resize("linear")
      .attribute("antialias", 1)
      .input<float>({4}, {1, 2, 3, 4})
      .no_input()
      .no_input()
      .input<int64_t>({1}, {2})
      .expect<float>({2}, {1.857143f - 0.2857143f, 3.4285714f})
      .tolerance(0.2, 0.2)
      .run();
}

TEST(Resize, CropAndExtrapolate) {
  resize("linear")
      .attribute("coordinate_transformation_mode", "tf_crop_and_resize")
      .attribute("extrapolation_value", 10.0f)
      .input<float>({3}, {1, 2, 3})
      .input<float>({2}, {0, 1.5f})
      .no_input()
      .input<int64_t>({1}, {4})
      .expect<float>({4}, {1, 2, 3, 10})
      .run();
  resize("nearest")
      .attribute("coordinate_transformation_mode", "tf_crop_and_resize")
      .attribute("extrapolation_value", 10.0f)
      .input<int32_t>({3}, {1, 2, 3})
      .input<float>({2}, {0, 1.5f})
      .no_input()
      .input<int64_t>({1}, {4})
      .expect<int32_t>({4}, {1, 2, 3, 10})
      .run();
}

TEST(Resize, AspectRatio) {
  auto test = [](const char* policy) {
    OpTest t = resize("nearest");
    t.attribute("keep_aspect_ratio_policy", policy)
        .input<float>({1, 2}, {1, 2})
        .no_input()
        .no_input()
        .input<int64_t>({2}, {2, 2});
    return t;
  };
  test("not_larger").expect<float>({1, 2}, {1, 2}).run();
  test("not_smaller").expect<float>({2, 4}, {1, 1, 2, 2, 1, 1, 2, 2}).run();
}

TEST(Resize, Versions) {
  resize("nearest", 10)
      .input<float>({3}, {1, 2, 3})
      .input<float>({1}, {2})
      .expect<float>({6}, {1, 1, 2, 2, 3, 3})
      .run();
  resize("linear", 10).input<float>({2}, {1, 2}).input<float>({1}, {2}).expect<float>({4}, {1, 1.5f, 2, 2}).run();
  resize("nearest", 11)
      .attribute("coordinate_transformation_mode", "tf_half_pixel_for_nn")
      .attribute("nearest_mode", "floor")
      .input<float>({4}, {1, 2, 3, 4})
      .input<float>({0}, {})
      .input<float>({1}, {0.5f})
      .expect<float>({2}, {2, 4})
      .run();
  // Samples at 0.25, 0.75, 1.25 and so on, the last beyond the last element.
  resize("linear", 11)
      .attribute("coordinate_transformation_mode", "tf_half_pixel_for_nn")
      .input<float>({3}, {1, 2, 4})
      .input<float>({0}, {})
      .input<float>({1}, {2})
      .expect<float>({6}, {1.25f, 1.75f, 2.5f, 3.5f, 4, 4})
      .run();
}

TEST(Resize, NearestOfVersion10) {
  resize("nearest", 10)
      .input<float>({1, 4}, {1, 2, 3, 4})
      .constant<float>({2}, {1, 0.6f})
      .expect<float>({1, 2}, {1, 3})
      .run();
  resize("nearest", 10)
      .input<float>({1, 4}, {1, 2, 3, 4})
      .constant<float>({2}, {2, 0.6f})
      .expect<float>({2, 2}, {1, 3, 1, 3})
      .run();
}

TEST(Upsample, Versions) {
  OpTest("Upsample", 1)
      .attribute("height_scale", 1.0f)
      .attribute("width_scale", 2.0f)
      .input<float>({1, 1, 1, 2}, {1, 2})
      .expect<float>({1, 1, 1, 4}, {1, 1, 2, 2})
      .run();
  OpTest("Upsample", 7).attribute("scales", {2.0f}).input<float>({2}, {1, 2}).expect<float>({4}, {1, 1, 2, 2}).run();
  OpTest("Upsample", 9)
      .attribute("mode", "linear")
      .input<float>({2}, {1, 2})
      .input<float>({1}, {2})
      .expect<float>({4}, {1, 1.5f, 2, 2})
      .run();
  OpTest("Upsample", 10).input<float>({2}, {1, 2}).input<float>({1}, {2}).expect<float>({4}, {1, 1, 2, 2}).run();
}

TEST(Resize, Errors) {
  auto first_line = [](std::string text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(first_line(resize("nearest").input<float>({2}, {1, 2}).error()),
            "missing-input in Resize 'tested' (node 0): neither scales nor sizes are given");
  EXPECT_EQ(first_line(resize("nearest").input<float>({2}, {1, 2}).no_input().constant<float>({1}, {-1}).error()),
            "invalid-value in Resize 'tested' (node 0): scales has -1; it must be positive");
  EXPECT_EQ(first_line(resize("sinc").input<float>({2}, {1, 2}).no_input().constant<float>({1}, {2}).error()),
            "invalid-attribute in Resize 'tested' (node 0): mode is 'sinc'; it may be one of nearest, linear, cubic");
}

}  // namespace
}  // namespace tenon
