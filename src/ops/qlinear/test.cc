#include "op_test.h"

namespace tenon {
namespace {

OpTest test(const char* op) { return OpTest(op, 1, "com.microsoft"); }

// Codes that stand for {0, 5}, and for {0, 1}.
OpTest& first(OpTest&& t) { return t.input<uint8_t>({2}, {10, 20}).input<float>({}, {0.5f}).input<uint8_t>({}, {10}); }
OpTest& second(OpTest& t) { return t.input<uint8_t>({2}, {4, 8}).input<float>({}, {0.25f}).input<uint8_t>({}, {4}); }
OpTest& result(OpTest& t, uint8_t a, uint8_t b) {
  return t.input<float>({}, {0.5f}).input<uint8_t>({}, {3}).expect<uint8_t>({2}, {a, b});
}

TEST(QLinear, Arithmetic) {
  result(second(first(test("QLinearAdd"))), 3, 15).run();
  result(second(first(test("QLinearMul"))), 3, 13).run();
  // Rows and columns, and codes beyond the last one.
  test("QLinearAdd")
      .input<int8_t>({2, 1}, {1, 100})
      .input<float>({}, {1})
      .no_input()
      .input<int8_t>({3}, {-3, 0, 90})
      .input<float>({}, {1})
      .no_input()
      .input<float>({}, {1})
      .expect<int8_t>({2, 3}, {-2, 1, 91, 97, 100, 127})
      .run();
}

TEST(QLinear, Functions) {
  test("QLinearSigmoid")
      .input<uint8_t>({3}, {0, 128, 255})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {128})
      .input<float>({}, {1.0f / 256})
      .input<uint8_t>({}, {0})
      .expect<uint8_t>({3}, {0, 128, 255})
      .run();
  test("QLinearLeakyRelu")
      .attribute("alpha", 0.5f)
      .input<uint8_t>({2}, {8, 12})
      .input<float>({}, {1})
      .input<uint8_t>({}, {10})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {10})
      .expect<uint8_t>({2}, {8, 14})
      .run();
  OpTest where = test("QLinearWhere");
  where.input<bool>({2}, {true, false});
  result(second(first(std::move(where))), 3, 5).run();
  test("QLinearSoftmax")
      .attribute("opset", 13)
      .attribute("axis", -1)
      .input<uint8_t>({1, 2}, {7, 7})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {0})
      .input<float>({}, {1.0f / 256})
      .input<uint8_t>({}, {0})
      .expect<uint8_t>({1, 2}, {128, 128})
      .run();
}

// e to the power of 0, 1 and 2, of 11.107 in all, in steps of 1/100; the axis before the last has no kernel.
TEST(QLinear, Softmax) {
  for (int axis : {1, 2, -1}) {
    const Shape shape = axis == 1 ? Shape{1, 3, 1} : Shape{1, 1, 3};
    OpTest t = test("QLinearSoftmax");
    t.attribute("opset", 13).attribute("axis", axis);
    t.input<int8_t>(shape, {-128, -126, -124}).input<float>({}, {0.5f}).input<int8_t>({}, {3});
    t.input<float>({}, {0.01f}).input<int8_t>({}, {-30}).expect<int8_t>(shape, {-21, -6, 37}).run();
  }
}

TEST(QLinear, Concat) {
  OpTest joined = test("QLinearConcat");
  joined.attribute("axis", 0).input<float>({}, {0.5f}).input<uint8_t>({}, {3});
  second(first(std::move(joined))).expect<uint8_t>({4}, {3, 13, 3, 5}).run();
}

OpTest pool(const char* op, Tensor x, float scale, uint8_t zero) {
  OpTest t = test(op);
  t.input(std::move(x)).input<float>({}, {0.5f}).input<uint8_t>({}, {10}).input<float>({}, {scale});
  t.input<uint8_t>({}, {zero});
  return t;
}

TEST(QLinear, Pools) {
  const Tensor first(Shape{1, 1, 1, 2}, {uint8_t{10}, uint8_t{14}});
  pool("QLinearGlobalAveragePool", first, 0.25f, 1).expect<uint8_t>({1, 1, 1, 1}, {5}).run();
  const Tensor last(Shape{1, 1, 2, 2}, {uint8_t{10}, uint8_t{12}, uint8_t{14}, uint8_t{16}});
  pool("QLinearGlobalAveragePool", last, 0.25f, 1)
      .attribute("channels_last", 1)
      .expect<uint8_t>({1, 1, 1, 2}, {5, 9})
      .run();
  const Tensor row(Shape{1, 1, 1, 3}, {uint8_t{10}, uint8_t{14}, uint8_t{18}});
  pool("QLinearAveragePool", row, 0.5f, 0)
      .attribute("kernel_shape", {1, 2})
      .expect<uint8_t>({1, 1, 1, 2}, {2, 6})
      .run();
  test("NhwcMaxPool")
      .attribute("kernel_shape", {1, 2})
      .input<uint8_t>({1, 1, 2, 2}, {1, 8, 5, 2})
      .expect<uint8_t>({1, 1, 1, 2}, {5, 8})
      .run();
}

// Without what comes after the bias.
OpTest conv_with_channels_last(OpTest test) {
  test.attribute("channels_last", 1)
      .input<uint8_t>({1, 1, 2, 1}, {10, 20})
      .constant<float>({}, {0.5f})
      .constant<uint8_t>({}, {10})
      .constant<int8_t>({2, 1, 1, 1}, {2, -3})
      .constant<float>({2}, {1, 2})
      .constant<int8_t>({2}, {0, 0})
      .constant<float>({}, {2})
      .constant<uint8_t>({}, {100})
      .constant<int32_t>({2}, {4, 0});
  return test;
}
OpTest conv_of_device() { return conv_with_channels_last(OpTest("QLinearConv", 1, "tenon")); }

TEST(QLinear, ConvWithChannelsLast) {
  conv_with_channels_last(test("QLinearConv")).expect<uint8_t>({1, 1, 2, 2}, {101, 100, 106, 85}).run();
}

TEST(QLinear, ConvOfFloatsWithChannelsFirst) {
  OpTest("QLinearConv", 1, "tenon")
      .attribute("channels_last", 1)
      .attribute("reads_channels_first", 1)
      .input<float>({1, 2, 1, 2}, {1, 2, -1, 0.2f})  // codes 12, 14; 8, 10
      .constant<float>({}, {0.5f})
      .constant<uint8_t>({}, {10})
      .constant<int8_t>({1, 2, 1, 1}, {2, -3})
      .constant<float>({}, {1})
      .constant<int8_t>({}, {0})
      .constant<float>({}, {0.5f})
      .constant<uint8_t>({}, {100})
      .expect<uint8_t>({1, 1, 2, 1}, {110, 108})
      .run();
}

TEST(QLinear, ConvThatLooksUp) {
  Tensor table(ElementType::uint8, Shape{256});
  for (size_t i = 0; i < 256; ++i) table.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(255 - i);
  OpTest test = conv_of_device();
  for (int i = 0; i < 5; ++i) test.no_input();
  test.constant(table).expect<uint8_t>({1, 1, 2, 2}, {154, 155, 149, 170}).run();
}

TEST(QLinear, ConvPlusAnotherImage) {
  conv_of_device()
      .input<uint8_t>({1, 1, 2, 2}, {10, 20, 30, 40})
      .constant<float>({}, {1})
      .constant<uint8_t>({}, {20})
      .constant<float>({}, {2})
      .constant<uint8_t>({}, {50})
      .expect<uint8_t>({1, 1, 2, 2}, {46, 50, 61, 45})
      .run();
}

TEST(QLinear, Products) {
  OpTest gemm = test("QGemm");
  gemm.input<uint8_t>({1, 2}, {3, 4}).input<float>({}, {0.5f}).input<uint8_t>({}, {1});
  gemm.input<int8_t>({2, 1}, {1, 2}).input<float>({}, {1}).input<int8_t>({}, {0}).input<int32_t>({1}, {4});
  gemm.input<float>({}, {2}).input<uint8_t>({}, {10}).expect<uint8_t>({1, 1}, {13}).run();
  test("MatMulIntegerToFloat")
      .input<uint8_t>({1, 2}, {3, 4})
      .input<int8_t>({2, 1}, {1, 2})
      .input<float>({}, {0.5f})
      .input<float>({}, {1})
      .input<uint8_t>({}, {1})
      .no_input()
      .input<float>({1}, {1})
      .expect<float>({1, 1}, {5})
      .run();
  // Scales of columns, and matrices one after the other.
  test("MatMulIntegerToFloat")
      .input<int8_t>({2, 1, 2}, {3, 4, -1, 2})
      .constant<uint8_t>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<float>({1}, {0.5f})
      .input<float>({3}, {1, 2, 4})
      .no_input()
      .constant<uint8_t>({3}, {1, 0, 2})
      .input<float>({3}, {1, 2, 3})
      .expect<float>({2, 1, 3}, {7, 28, 41, 4, 10, 17})
      .run();
  test("MatMulIntegerToFloat")
      .input<int8_t>({2, 1, 1}, {3, -2})
      .input<int8_t>({2, 1, 2}, {1, 2, 3, 4})
      .input<float>({}, {0.5f})
      .input<float>({}, {2})
      .expect<float>({2, 1, 2}, {3, 6, -6, -8})
      .run();
  EXPECT_EQ(
      test("MatMulIntegerToFloat")
          .input<int8_t>({1, 1}, {3})
          .input<int8_t>({1, 2}, {1, 2})
          .input<float>({}, {0.5f})
          .input<float>({}, {2})
          .no_input()
          .no_input()
          .input<float>({3}, {1, 2, 3})
          .expect<float>({1, 2}, {0, 0})
          .error(),
      "shape-mismatch in com.microsoft.MatMulIntegerToFloat 'tested' (node 0): bias has 3 elements; it must have 2");
  test("DynamicQuantizeMatMul")
      .input<float>({1, 2}, {0, 255})
      .input<int8_t>({2, 1}, {1, 2})
      .input<float>({}, {0.5f})
      .expect<float>({1, 1}, {255})
      .run();
}

TEST(QLinear, SixteenBits) {
  test("QuantizeLinear")
      .input<float>({2}, {1, -2})
      .input<float>({}, {0.5f})
      .input<uint16_t>({}, {100})
      .expect<uint16_t>({2}, {102, 96})
      .run();
  test("DequantizeLinear")
      .input<int16_t>({2}, {102, 96})
      .input<float>({}, {0.5f})
      .input<int16_t>({}, {100})
      .expect<float>({2}, {1, -2})
      .run();
}

TEST(QuantizedLayers, ReduceMean) {
  OpTest t = test("QLinearReduceMean");
  t.attribute("axes", {1}).attribute("keepdims", 0);
  t.input<uint8_t>({2, 2}, {10, 14, 20, 30}).input<float>({}, {0.5f}).input<uint8_t>({}, {10});
  t.input<float>({}, {0.25f}).input<uint8_t>({}, {1}).expect<uint8_t>({2}, {5, 31}).run();
}

TEST(QuantizedLayers, Embedding) {
  OpTest t = test("QEmbedLayerNormalization");
  t.input<int32_t>({1, 2}, {1, 0}).no_input();
  t.constant<uint8_t>({2, 2}, {5, 3, 1, 9}).constant<uint8_t>({3, 2}, {0, 0, 1, 0, 9, 9}).no_input();
  t.constant<uint8_t>({2}, {3, 4}).constant<uint8_t>({2}, {0, 2}).input<int32_t>({1, 2}, {1, 0});
  t.constant<float>({}, {1}).constant<float>({}, {1}).no_input().constant<float>({}, {1}).constant<float>({}, {0.5f});
  t.constant<uint8_t>({}, {0}).constant<uint8_t>({}, {0}).no_input().constant<uint8_t>({}, {1}).constant<uint8_t>({},
                                                                                                                  {0});
  t.expect<float>({1, 2, 2}, {-2, 4, 2, -2}).expect<int32_t>({1}, {1}).run();
}

TEST(QuantizedLayers, Lstm) {
  for (bool by_output : {false, true}) {
    OpTest t = test("DynamicQuantizeLSTM");
    const Shape scale = by_output ? Shape{1, 4} : Shape{1};
    const std::vector<float> ten(by_output ? 4 : 1, 10);
    const std::vector<int8_t> one(by_output ? 4 : 1, 1);
    const Tensor scales(scale, std::span<const float>(ten)), zeros(scale, std::span<const int8_t>(one));
    t.attribute("hidden_size", 1);
    t.input<float>({1, 1, 1}, {1}).constant<int8_t>({1, 1, 4}, {2, 2, 1, 2}).constant<int8_t>({1, 1, 4}, {3, 3, 3, 3});
    for (int i = 0; i < 5; ++i) t.no_input();
    t.constant(scales).constant(zeros).constant(scales).constant(zeros);
    t.expect<float>({1, 1, 1, 1}, {0.7615405f})
        .expect<float>({1, 1, 1}, {0.7615405f})
        .expect<float>({1, 1, 1}, {0.9999546f});
    t.run();
  }
}

// Queries and keys are 0, so that all values count the same.
OpTest attention() {
  OpTest t = test("QAttention");
  t.attribute("num_heads", 1);
  t.input<uint8_t>({1, 2, 1}, {3, 5}).constant<int8_t>({1, 3}, {0, 0, 2}).constant<float>({3}, {0, 0, 1});
  t.input<float>({}, {1}).constant<float>({}, {0.5f});
  return t;
}

TEST(QuantizedLayers, Attention) {
  attention().no_input().input<uint8_t>({}, {1}).expect<float>({1, 2, 1}, {4, 4}).run();
  attention().attribute("unidirectional", 1).no_input().input<uint8_t>({}, {1}).expect<float>({1, 2, 1}, {3, 4}).run();
  attention().constant<int32_t>({1}, {1}).input<uint8_t>({}, {1}).expect<float>({1, 2, 1}, {3, 3}).run();
  attention().constant<int32_t>({1, 2}, {0, 1}).input<uint8_t>({}, {1}).expect<float>({1, 2, 1}, {5, 5}).run();
  attention()
      .no_input()
      .input<uint8_t>({}, {1})
      .no_input()
      .constant<float>({2, 1, 1, 1, 1}, {0, 10})
      .expect<float>({1, 2, 1}, {6, 6})
      .expect<float>({2, 1, 1, 3, 1}, {0, 0, 0, 10, 3, 5})
      .run();
}

TEST(LookUp, SignedCodesAreUnsignedIndices) {
  Tensor table(ElementType::uint8, Shape{256});
  for (size_t i = 0; i < 256; ++i) table.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(255 - i);
  OpTest("LookUp", 1, "tenon").input<int8_t>({3}, {-1, 0, 3}).input(table).expect<uint8_t>({3}, {0, 255, 252}).run();
  OpTest("LookUp", 1, "tenon").input<uint8_t>({2}, {255, 3}).input(table).expect<uint8_t>({2}, {0, 252}).run();
}

}  // namespace
}  // namespace tenon
