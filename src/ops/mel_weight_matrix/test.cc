#include "op_test.h"

namespace tenon {
namespace {

OpTest mel(int64_t length, float low, float high) {
  OpTest test("MelWeightMatrix");
  test.input<int64_t>({}, {2})
      .input<int64_t>({}, {length})
      .input<int64_t>({}, {8000})
      .input<float>({}, {low})
      .input<float>({}, {high});
  return test;
}

TEST(MelWeightMatrix, Triangles) {
  // Edges at bins 0, 0, 2 and 4.
  mel(16, 0, 4000).expect<float>({9, 2}, {1, 0, 0.5f, 0.5f, 0, 1, 0, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}).run();
  mel(16, 0, 4000)
      .attribute("output_datatype", static_cast<int64_t>(ElementType::int8))
      .expect<int8_t>({9, 2}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
      .run();
  mel(16, 0, 4000)
      .attribute("output_datatype", static_cast<int64_t>(ElementType::float64))
      .expect<double>({9, 2}, {1, 0, 0.5, 0.5, 0, 1, 0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
      .run();
}

TEST(MelWeightMatrix, NoBands) {
  OpTest("MelWeightMatrix")
      .constant<int32_t>({}, {0})
      .constant<int32_t>({}, {4})
      .constant<int32_t>({}, {8})
      .input<float16>({}, {float16(0)})
      .input<float16>({}, {float16(1)})
      .expect<float>({3, 0}, {})
      .run();
}

TEST(MelWeightMatrix, Errors) {
  EXPECT_EQ(
      mel(8, 3000, 2000).error(),
      "invalid-value in MelWeightMatrix 'tested' (node 0): lower_edge_hertz is 3000, above upper_edge_hertz, 2000");
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(mel(8, 0, 90000).error(), "upper_edge_hertz is 90000, beyond the 5 bins of the spectrum");
  contains(mel(-1, 0, 1).error(), "dft_length is -1; it must be at least 0");
  contains(mel(8, -1, 1).error(), "lower_edge_hertz is -1; it must be at least 0");
  contains(mel(8, 0, 1).attribute("output_datatype", 8).error(), "output_datatype string is no type of numbers");
}

}  // namespace
}  // namespace tenon
