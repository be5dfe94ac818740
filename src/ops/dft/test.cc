#include "op_test.h"

namespace tenon {
namespace {

OpTest dft(int64_t opset = ops::newest_opset) {
  OpTest test("DFT", opset);
  test.input<float>({1, 5, 1}, {1, 2, 3, 4, 5});
  return test;
}

TEST(Dft, Forward) {
  dft()
      .expect<float>({1, 5, 2}, {15, 0, -2.5f, 3.440955f, -2.5f, 0.8122992f, -2.5f, -0.8122992f, -2.5f, -3.440955f})
      .run();
  dft(17).constant<int64_t>({}, {3}).expect<float>({1, 3, 2}, {6, 0, -1.5f, 0.8660254f, -1.5f, -0.8660254f}).run();
  dft(19)
      .attribute("axis", -2)
      .attribute("onesided", 1)
      .input<int32_t>({1}, {7})
      .expect<float>({1, 4, 2}, {15, 0, -6.529303f, -4.054563f, 3.46346f, -1.430036f, -0.9341567f, 2.452655f})
      .run();
}

TEST(Dft, AxisInTheMiddle) {
  OpTest("DFT")
      .input<double>({2, 2, 1}, {1, 2, 3, 4})
      .no_input()
      .input<int64_t>({}, {0})
      .expect<double>({2, 2, 2}, {4, 0, 6, 0, -2, 0, -2, 0})
      .run();
  OpTest("DFT")
      .input<double>({2, 2, 1}, {1, 2, 3, 4})
      .no_input()
      .constant<int64_t>({1}, {-3})
      .expect<double>({2, 2, 2}, {4, 0, 6, 0, -2, 0, -2, 0})
      .run();
}

TEST(Dft, Inverse) {
  OpTest("DFT")
      .attribute("inverse", 1)
      .input<float>({5, 2}, {1, 5, 2, 4, 3, 3, 4, 2, 5, 1})
      .expect<float>({5, 2}, {3, 3, -1.188191f, -0.188191f, -0.6624598f, 0.3375402f, -0.3375402f, 0.6624598f, 0.188191f,
                              1.188191f})
      .run();
  auto to_real = [] {
    OpTest test("DFT");
    test.attribute("inverse", 1).attribute("onesided", 1).input<float>({3, 2}, {6, 5, -1, 2, 3, 9});
    return test;
  };
  to_real().expect<float>({4, 1}, {1.75f, -0.25f, 2.75f, 1.75f}).run();
  to_real().input<int64_t>({}, {5}).expect<float>({5, 1}, {2, -2.771299f, 4.848002f, -1.059148f, 2.982445f}).run();
}

TEST(Dft, TypesAndSizes) {
  OpTest("DFT")
      .input<float16>({2, 1}, {float16(1), float16(2)})
      .expect<float16>({2, 2}, {float16(3), float16(0), float16(-1), float16(0)})
      .run();
  OpTest("DFT").input<bfloat16>({1, 1}, {bfloat16(3)}).expect<bfloat16>({1, 2}, {bfloat16(3), bfloat16(0)}).run();
  OpTest("DFT").input<float>({0, 4, 1}, {}).expect<float>({0, 4, 2}, {}).run();
}

TEST(Dft, Errors) {
  EXPECT_EQ(dft().constant<int64_t>({}, {0}).error(),
            "invalid-value in DFT 'tested' (node 0): dft_length is 0; it must be at least 1\n"
            "  input 0 'in0' is tensor(float) [1, 5, 1], an input of the graph\n"
            "  input 1 'in1' is tensor(int64) [], an initializer");
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(dft().no_input().input<int64_t>({}, {2}).error(),
           "axis 2 is the last one, which holds real and imaginary parts");
  contains(dft().no_input().input<int64_t>({}, {-4}).error(), "axis -4 is out of range");
  contains(dft().input<int64_t>({2}, {1, 2}).error(), "dft_length must be one number, it has shape [2]");
  contains(dft().attribute("inverse", 1).attribute("onesided", 1).error(),
           "an inverse with onesided needs complex input, with a last axis of size 2; it has size 1");
  contains(OpTest("DFT").attribute("onesided", 1).input<float>({2, 2}, {1, 2, 3, 4}).error(),
           "onesided needs real input, with a last axis of size 1; it has size 2");
  contains(OpTest("DFT").input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).error(),
           "the last axis must have size 1 (real) or 2 (complex), it has size 3");
  contains(dft().attribute("onesided", 2).error(), "onesided is 2; it may be 0 or 1");
}

TEST(Stft, FramesAndWindow) {
  auto stft = [] {
    OpTest test("STFT");
    test.input<float>({1, 5, 1}, {1, 2, 3, 4, 5}).constant<int64_t>({}, {2});
    return test;
  };
  stft().no_input().constant<int64_t>({}, {2}).expect<float>({1, 2, 2, 2}, {3, 0, -1, 0, 7, 0, -1, 0}).run();
  stft().input<float>({2}, {1, 0.5f}).expect<float>({1, 2, 2, 2}, {2, 0, 0, 0, 5, 0, 1, 0}).run();
  stft()
      .attribute("onesided", 0)
      .input<float>({3}, {1, 1, 0})
      .input<int64_t>({}, {3})
      .expect<float>({1, 2, 3, 2}, {3, 0, 0, -1.7320508f, 0, 1.7320508f, 7, 0, 1, -3.4641016f, 1, 3.4641016f})
      .run();
  stft().expect<float>({1, 1, 3, 2}, {15, 0, -2.5f, 3.440955f, -2.5f, 0.8122992f}).run();
  OpTest("STFT")  // a real signal may lack the last axis
      .input<float>({1, 4}, {1, 0, 0, 0})
      .input<int64_t>({}, {4})
      .no_input()
      .input<int64_t>({}, {4})
      .expect<float>({1, 1, 3, 2}, {1, 0, 1, 0, 1, 0})
      .run();
  OpTest("STFT")
      .attribute("onesided", 0)
      .input<double>({1, 2, 2}, {1, 2, 3, 4})
      .input<int32_t>({}, {1})
      .no_input()
      .input<int32_t>({}, {1})
      .expect<double>({1, 2, 1, 2}, {1, 2, 3, 4})
      .run();
}

TEST(Stft, Errors) {
  auto stft = [](int64_t step) {
    OpTest test("STFT");
    test.input<float>({1, 2, 1}, {1, 2}).input<int64_t>({}, {step});
    return test;
  };
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(stft(0).error(), "frame_step is 0; it must be at least 1");
  contains(stft(1).no_input().input<int64_t>({}, {3}).error(), "frame_length is 3; the signal has only 2 samples");
  contains(stft(1).input<float>({2}, {1, 2}).constant<int64_t>({}, {1}).error(),
           "frame_length and the size of the window");
  contains(stft(1).no_input().input<int64_t>({}, {0}).error(), "frame_length is 0; it must be at least 1");
}

}  // namespace
}  // namespace tenon
