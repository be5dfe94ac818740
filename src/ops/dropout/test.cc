#include <algorithm>

#include "model_builder.h"
#include "op_test.h"

namespace tenon {
namespace {

TEST(Dropout, Inference) {
  OpTest("Dropout").input<float>({2}, {1, 2}).expect<float>({2}, {1, 2}).expect<bool>({2}, {true, true}).run();
  OpTest("Dropout")
      .input<float>({2}, {1, 2})
      .constant<float>({}, {0.5f})
      .constant<bool>({}, {false})
      .expect<float>({2}, {1, 2})
      .run();
  OpTest("Dropout", 10)
      .attribute("ratio", 0.1f)
      .input<double>({2}, {1, 2})
      .expect<double>({2}, {1, 2})
      .expect<bool>({2}, {true, true})
      .run();
  OpTest("Dropout", 6)
      .attribute("is_test", 1)
      .attribute("ratio", 0.1f)
      .input<float>({2}, {1, 2})
      .expect<float>({2}, {1, 2})
      .run();
}

TEST(Dropout, Training) {
  OpTest("Dropout")
      .input<float>({2}, {1, 2})
      .constant<float>({}, {0.0f})
      .constant<bool>({}, {true})
      .expect<float>({2}, {1, 2})
      .run();
  EXPECT_EQ(OpTest("Dropout").input<float>({1}, {1}).constant<float>({}, {1.5f}).constant<bool>({}, {true}).error(),
            "invalid-value in Dropout 'tested' (node 0): ratio is 1.5; it must be at least 0 and below 1");
}

TEST(Dropout, DropsAboutTheRatio) {
  constexpr int64_t n = 100000;
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n});
  b.initializer("ratio", Tensor::scalar(0.75f));
  b.initializer("training", Tensor(Shape{}, {true}));
  b.node("Dropout", {"x", "ratio", "training"}, {"y", "mask"}).set_attribute(ir::Attribute("seed", int64_t{5}));
  b.output("y").output("mask");
  Tensor x(ElementType::float32, Shape{n});
  std::ranges::fill(x.mutable_data<float>(), 0.5f);
  SessionOptions one_thread, four_threads;
  one_thread.threads = 1;
  four_threads.threads = 4;
  NamedValues first = b.session(one_thread).run({{"x", x}}), second = b.session(four_threads).run({{"x", x}});
  EXPECT_TRUE(identical(first.at("y").tensor(), second.at("y").tensor()));
  auto y = first.at("y").tensor().data<float>();
  auto mask = first.at("mask").tensor().data<bool>();
  int64_t kept = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], mask[i] ? 2.0f : 0.0f);
    kept += mask[i];
  }
  EXPECT_NEAR(static_cast<double>(kept) / n, 0.25, 5 * std::sqrt(0.25 * 0.75 / n));
}

TEST(Dropout, MaskHadTheTypeOfTheData) {
  OpTest("Dropout", 7)
      .attribute("ratio", 0.1f)
      .input<float>({2}, {1, 2})
      .expect<float>({2}, {1, 2})
      .expect<float>({2}, {1, 1})
      .run();
}

}  // namespace
}  // namespace tenon
