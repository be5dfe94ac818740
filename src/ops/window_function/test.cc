#include "op_test.h"

namespace tenon {
namespace {

TEST(WindowFunction, Periodic) {
  OpTest("HannWindow").input<int32_t>({}, {4}).expect<float>({4}, {0, 0.5f, 1, 0.5f}).run();
  OpTest("HannWindow").input<int64_t>({}, {3}).expect<float>({3}, {0, 0.75f, 0.75f}).run();
  OpTest("HammingWindow").input<int64_t>({}, {4}).expect<float>({4}, {0.0869565f, 0.5434783f, 1, 0.5434783f}).run();
  OpTest("BlackmanWindow").input<int64_t>({}, {4}).expect<float>({4}, {0, 0.34f, 1, 0.34f}).run();
}

TEST(WindowFunction, Symmetric) {
  auto window = [](const char* name, int64_t size) {
    OpTest test(name);
    test.attribute("periodic", 0).input<int64_t>({}, {size});
    return test;
  };
  window("HannWindow", 5).expect<float>({5}, {0, 0.5f, 1, 0.5f, 0}).run();
  window("HannWindow", 4).expect<float>({4}, {0, 0.75f, 0.75f, 0}).run();
  window("HammingWindow", 3).expect<float>({3}, {0.0869565f, 1, 0.0869565f}).run();
  window("BlackmanWindow", 3).expect<float>({3}, {0, 1, 0}).run();
  window("HannWindow", 1).expect<float>({1}, {1}).run();
  window("HannWindow", 0).expect<float>({0}, {}).run();
}

TEST(WindowFunction, Types) {
  auto window = [](ElementType type) {
    OpTest test("HammingWindow");
    test.attribute("output_datatype", static_cast<int64_t>(type)).constant<int64_t>({}, {2});
    return test;
  };
  window(ElementType::float64).tolerance(0, 1e-15).expect<double>({2}, {4.0 / 46, 1}).run();
  window(ElementType::float16).expect<float16>({2}, {float16(4.0f / 46), float16(1)}).run();
  window(ElementType::bfloat16).expect<bfloat16>({2}, {bfloat16(4.0f / 46), bfloat16(1)}).run();
  window(ElementType::int8).expect<int8_t>({2}, {0, 1}).run();
  window(ElementType::uint64).expect<uint64_t>({2}, {0, 1}).run();
}

TEST(WindowFunction, Errors) {
  EXPECT_EQ(OpTest("HannWindow").constant<int64_t>({}, {-3}).error(),
            "invalid-value in HannWindow 'tested' (node 0): a window cannot have size -3\n"
            "  input 0 'in0' is tensor(int64) [], an initializer");
  EXPECT_NE(OpTest("HannWindow").input<int64_t>({}, {-3}).error().find("a window cannot have size -3"),
            std::string::npos);
  EXPECT_NE(OpTest("HannWindow").constant<int64_t>({2}, {1, 2}).error().find("size must be one number, it has 2"),
            std::string::npos);
  EXPECT_NE(OpTest("HannWindow")
                .attribute("output_datatype", 8)
                .input<int64_t>({}, {3})
                .error()
                .find("output_datatype string is no type of numbers"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
