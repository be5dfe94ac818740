#include <algorithm>

#include "op_test.h"

namespace tenon {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Reduce, Functions) {
  struct Case {
    const char* op;
    float rows[2], columns[3], all;
  };
  for (const Case& c :
       {Case{"ReduceSum", {6, 15}, {5, 7, 9}, 21}, Case{"ReduceMean", {2, 5}, {2.5f, 3.5f, 4.5f}, 3.5f},
        Case{"ReduceMax", {3, 6}, {4, 5, 6}, 6}, Case{"ReduceMin", {1, 4}, {1, 2, 3}, 1},
        Case{"ReduceProd", {6, 120}, {4, 10, 18}, 720}, Case{"ReduceL1", {6, 15}, {5, 7, 9}, 21},
        Case{"ReduceL2", {3.7416574f, 8.774964f}, {4.1231056f, 5.3851648f, 6.7082039f}, 9.539392f},
        Case{"ReduceSumSquare", {14, 77}, {17, 29, 45}, 91},
        Case{"ReduceLogSum", {1.7917595f, 2.7080502f}, {1.6094379f, 1.9459101f, 2.1972246f}, 3.0445225f},
        Case{"ReduceLogSumExp", {3.4076059f, 6.4076059f}, {4.0485874f, 5.0485874f, 6.0485874f}, 6.4561931f}}) {
    const Tensor x({2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
    for (int64_t side_by_side : {8, 16}) {
      Tensor columns(ElementType::float32, Shape{6, side_by_side}), all(ElementType::float32, Shape{1, side_by_side});
      for (size_t i = 0; i < static_cast<size_t>(6 * side_by_side); ++i)
        columns.mutable_data<float>()[i] = static_cast<float>(i / static_cast<size_t>(side_by_side) + 1);
      std::ranges::fill(all.mutable_data<float>(), c.all);
      OpTest(c.op).input(columns).constant<int64_t>({1}, {0}).expect(all).run();
    }
    OpTest(c.op).input(x).constant<int64_t>({1}, {1}).expect<float>({2, 1}, {c.rows[0], c.rows[1]}).run();
    OpTest(c.op)
        .input(x)
        .input<int64_t>({1}, {-2})
        .attribute("keepdims", 0)
        .expect<float>({3}, {c.columns[0], c.columns[1], c.columns[2]})
        .run();
    OpTest(c.op).input(x).expect<float>({1, 1}, {c.all}).run();
    OpTest(c.op).input(x).attribute("keepdims", 0).input<int64_t>({0}, {}).expect<float>({}, {c.all}).run();
    OpTest(c.op).input<double>({2, 3}, {1, 2, 3, 4, 5, 6}).attribute("keepdims", 0).expect<double>({}, {c.all}).run();
    OpTest(c.op)
        .input<float16>({2}, {float16(1), float16(1)})
        .attribute("keepdims", 0)
        .input<int64_t>({1}, {0})
        .tolerance(1, 1)
        .expect<float16>({}, {float16(1)})
        .run();
  }
}

// Of numbers that follow each other, wherever the extreme one or a NaN lies.
TEST(Reduce, ExtremesOfLongRows) {
  for (int64_t n : {1, 7, 31, 32, 33, 64, 75, 100}) {
    for (const char* op : {"ReduceMax", "ReduceMin"}) {
      for (float extreme : {op == std::string("ReduceMax") ? 99.0f : -99.0f, static_cast<float>(NAN)}) {
        Tensor x(ElementType::float32, {n, n}), y(ElementType::float32, {n});
        for (int64_t i = 0; i < n * n; ++i)
          x.mutable_data<float>()[static_cast<size_t>(i)] = i / n == i % n ? extreme : static_cast<float>(i * 31 % 47);
        std::ranges::fill(y.mutable_data<float>(), extreme);
        OpTest(op).attribute("keepdims", 0).input(x).input<int64_t>({1}, {1}).expect(y).run();
      }
    }
  }
}

// Rows that are merged several at a time, with some left over; column 3 has a NaN.
TEST(Reduce, LongRowsColumnByColumn) {
  for (int64_t rows : {3, 4, 7, 9}) {
    for (int64_t n : {4101, 20003}) {
      Tensor x(ElementType::float32, {rows, n}), sum(ElementType::float32, {n}), largest(ElementType::float32, {n}),
          smallest(ElementType::float32, {n});
      const auto in = x.mutable_data<float>(), sums = sum.mutable_data<float>();
      const auto highs = largest.mutable_data<float>(), lows = smallest.mutable_data<float>();
      const auto value = [&](int64_t row, int64_t i) {
        return i == 3 && row == rows / 2 ? NAN : static_cast<float>((row * 37 + i * 11) % 64 - 32);
      };
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(i);
        sums[at] = 0, highs[at] = -infinity, lows[at] = infinity;
        for (int64_t row = 0; row < rows; ++row) {
          in[static_cast<size_t>(row * n + i)] = value(row, i);
          sums[at] += value(row, i);
          highs[at] = std::max(highs[at], value(row, i));
          lows[at] = std::min(lows[at], value(row, i));
        }
      }
      highs[3] = lows[3] = NAN;
      for (const auto& [op, expected] : {std::pair{"ReduceSum", sum}, {"ReduceMax", largest}, {"ReduceMin", smallest}})
        OpTest(op).attribute("keepdims", 0).input(x).input<int64_t>({1}, {0}).expect(expected).run();
    }
  }
}

TEST(Reduce, Axes) {
  Tensor x(ElementType::float32, {2, 3, 2, 2});
  for (size_t i = 0; i < 24; ++i) x.mutable_data<float>()[i] = static_cast<float>(i);
  OpTest("ReduceSum")
      .attribute("keepdims", 0)
      .input(x)
      .input<int64_t>({3}, {0, 2, 3})
      .expect<float>({3}, {60, 92, 124})
      .run();
  OpTest("ReduceSum")
      .attribute("keepdims", 0)
      .input(x)
      .input<int64_t>({2}, {1, -1})
      .expect<float>({2, 2}, {27, 39, 99, 111})
      .run();
  OpTest("ReduceMax")
      .attribute("keepdims", 0)
      .input(x)
      .input<int64_t>({2}, {0, 2})
      .expect<float>({3, 2}, {14, 15, 18, 19, 22, 23})
      .run();
  OpTest("ReduceSum").attribute("noop_with_empty_axes", 1).input<float>({2}, {1, 2}).expect<float>({2}, {1, 2}).run();
  OpTest("ReduceSumSquare")
      .attribute("noop_with_empty_axes", 1)
      .input<float>({2}, {2, 3})
      .input<int64_t>({0}, {})
      .expect<float>({2}, {4, 9})
      .run();
  OpTest("ReduceSum").input<float>({}, {5}).expect<float>({}, {5}).run();
}

TEST(Reduce, Large) {
  constexpr int64_t rows = 70, columns = 10000;
  Tensor x(ElementType::float32, {rows, columns}), by_row(ElementType::float32, {rows, 1}),
      by_column(ElementType::float32, {1, columns});
  for (size_t i = 0; i < rows * columns; ++i) x.mutable_data<float>()[i] = 0.5f;
  std::ranges::fill(by_row.mutable_data<float>(), 5000.0f);
  std::ranges::fill(by_column.mutable_data<float>(), 35.0f);
  OpTest("ReduceSum").input(x).input<int64_t>({1}, {1}).expect(by_row).run();
  OpTest("ReduceSum").input(x).input<int64_t>({1}, {0}).expect(by_column).run();
}

template <typename T>
void expect_sums_of_short_rows() {
  for (int64_t n = 1; n < 40; ++n) {
    Tensor x(element_type_of<T>, {3, n}), sums(element_type_of<T>, {3, 1}), squares(element_type_of<T>, {3, 1}),
        magnitudes(element_type_of<T>, {3, 1});
    for (size_t row = 0; row < 3; ++row) {
      T sum = 0, square = 0, magnitude = 0;
      for (int64_t i = 0; i < n; ++i) {
        const T value = static_cast<T>((i * 7 + static_cast<int64_t>(row)) % 11 - 5);
        x.mutable_data<T>()[row * static_cast<size_t>(n) + static_cast<size_t>(i)] = value;
        sum += value, square += value * value, magnitude += value < 0 ? -value : value;
      }
      sums.mutable_data<T>()[row] = sum;
      squares.mutable_data<T>()[row] = square;
      magnitudes.mutable_data<T>()[row] = magnitude;
    }
    OpTest("ReduceSum").input(x).input<int64_t>({1}, {1}).expect(sums).run();
    OpTest("ReduceSumSquare").input(x).input<int64_t>({1}, {1}).expect(squares).run();
    OpTest("ReduceL1").input(x).input<int64_t>({1}, {1}).expect(magnitudes).run();
  }
}

TEST(Reduce, ShortRowsOfAllTypes) {
  expect_sums_of_short_rows<int32_t>();
  expect_sums_of_short_rows<int64_t>();
  expect_sums_of_short_rows<float>();
  expect_sums_of_short_rows<double>();
}

TEST(Reduce, Types) {
  OpTest("ReduceSum")
      .attribute("keepdims", 0)
      .input<int32_t>({2}, {2147483647, 1})
      .expect<int32_t>({}, {-2147483648})
      .run();
  OpTest("ReduceMean")
      .attribute("keepdims", 0)
      .input<int32_t>({2}, {2147483647, 2147483647})
      .expect<int32_t>({}, {2147483647})
      .run();
  OpTest("ReduceL2").attribute("keepdims", 0).input<int64_t>({2}, {3, -4}).expect<int64_t>({}, {5}).run();
  OpTest("ReduceMax")
      .attribute("keepdims", 0)
      .input<uint64_t>({2}, {1, ~uint64_t{0}})
      .expect<uint64_t>({}, {~uint64_t{0}})
      .run();
  OpTest("ReduceMin").attribute("keepdims", 0).input<int8_t>({2}, {-128, 5}).expect<int8_t>({}, {-128}).run();
  OpTest("ReduceMax").attribute("keepdims", 0).input<bool>({2}, {false, true}).expect<bool>({}, {true}).run();
}

TEST(Reduce, EmptySets) {
  OpTest("ReduceSum").input<float>({2, 0}, {}).input<int64_t>({1}, {1}).expect<float>({2, 1}, {0, 0}).run();
  OpTest("ReduceProd").input<float>({0, 2}, {}).input<int64_t>({1}, {0}).expect<float>({1, 2}, {1, 1}).run();
  OpTest("ReduceMax")
      .input<float>({2, 0}, {})
      .input<int64_t>({1}, {1})
      .expect<float>({2, 1}, {-infinity, -infinity})
      .run();
  OpTest("ReduceMin").input<int32_t>({0}, {}).attribute("keepdims", 0).expect<int32_t>({}, {2147483647}).run();
  OpTest("ReduceMean").input<int32_t>({0}, {}).attribute("keepdims", 0).expect<int32_t>({}, {0}).run();
  OpTest("ReduceLogSumExp").input<float>({0}, {}).attribute("keepdims", 0).expect<float>({}, {-infinity}).run();
  OpTest("ReduceSum").input<float>({2, 0}, {}).input<int64_t>({1}, {0}).expect<float>({1, 0}, {}).run();
}

TEST(Reduce, LogarithmsOfIntegersAreTruncated) {
  OpTest("ReduceLogSum", 13).input<int64_t>({3}, {2, 3, 20}).expect<int64_t>({1}, {3}).run();
  OpTest("ReduceLogSumExp", 13).input<int32_t>({2}, {5, 5}).expect<int32_t>({1}, {5}).run();
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  OpTest("ReduceLogSumExp")
      .attribute("keepdims", 0)
      .input<float>({2}, {1000, 1000})
      .expect<float>({}, {1000.6931f})
      .run();
  OpTest("ReduceLogSumExp")
      .attribute("keepdims", 0)
      .input<float>({2}, {-infinity, -infinity})
      .expect<float>({}, {-infinity})
      .run();
}

TEST(Reduce, LogSumExpOfLongRows) {
  for (float special : {0.5f, infinity, -infinity, static_cast<float>(NAN)}) {
    Tensor x(ElementType::float32, {100});
    std::ranges::fill(x.mutable_data<float>(), 0.5f);
    x.mutable_data<float>()[70] = special;
    const float expected = special == infinity    ? infinity
                           : special == -infinity ? 0.5f + std::log(99.0f)
                                                  : special + std::log(100.0f);
    OpTest("ReduceLogSumExp").attribute("keepdims", 0).input(x).expect<float>({}, {expected}).run();
  }
  Tensor nothing(ElementType::float32, {100});
  std::ranges::fill(nothing.mutable_data<float>(), -infinity);
  OpTest("ReduceLogSumExp").attribute("keepdims", 0).input(nothing).expect<float>({}, {-infinity}).run();
}

// Rows of every length, against sums in double precision.
TEST(Reduce, RowsOfEveryLength) {
  struct Case {
    const char* op;
    double (*map)(double);
    double (*finish)(double);
  };
  const auto same = [](double v) { return v; };
  const Case cases[] = {
      {"ReduceSum", same, same},
      {"ReduceL1", [](double v) { return std::abs(v); }, same},
      {"ReduceSumSquare", [](double v) { return v * v; }, same},
      {"ReduceProd", [](double v) { return std::log(std::abs(v)); }, [](double v) { return std::exp(v); }},
      {"ReduceLogSumExp", [](double v) { return std::exp(v); }, [](double v) { return std::log(v); }}};
  std::vector<int64_t> lengths{767, 768, 4096, 4103, 10000};
  for (int64_t n = 1; n < 100; ++n) lengths.push_back(n);
  for (const Case& c : cases) {
    for (int64_t n : lengths) {
      Tensor x(ElementType::float32, {3, n}), y(ElementType::float32, {3});
      const auto in = x.mutable_data<float>(), out = y.mutable_data<float>();
      for (size_t i = 0; i < in.size(); ++i) in[i] = 1 + static_cast<float>(i * 37 % 64) / 65536;
      for (size_t row = 0; row < 3; ++row) {
        double sum = 0;
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) sum += c.map(in[row * static_cast<size_t>(n) + i]);
        out[row] = static_cast<float>(c.finish(sum));
      }
      OpTest(c.op).attribute("keepdims", 0).input(x).constant<int64_t>({1}, {1}).tolerance(1e-5, 0).expect(y).run();
    }
  }
}

// Two rows, one of which has the extreme somewhere.
template <typename T>
void expect_extreme(const char* op, T others, T extreme) {
  for (int64_t n : {32, 63, 64, 65, 128, 200, 300}) {
    for (int64_t place : {int64_t{0}, n / 3, n / 2, n - 1}) {
      Tensor x(element_type_of<T>, {2, n}), y(element_type_of<T>, {2});
      std::ranges::fill(x.mutable_data<T>(), others);
      x.mutable_data<T>()[static_cast<size_t>(n + place)] = extreme;
      y.mutable_data<T>()[0] = others;
      y.mutable_data<T>()[1] = extreme;
      OpTest(op).attribute("keepdims", 0).input(x).constant<int64_t>({1}, {1}).expect(y).run();
    }
  }
}

TEST(Reduce, ExtremesOfLongRowsOfOtherTypes) {
  expect_extreme<uint8_t>("ReduceMax", 127, 128);
  expect_extreme<uint8_t>("ReduceMin", 128, 127);
  expect_extreme<int8_t>("ReduceMax", -2, -1);
  expect_extreme<int8_t>("ReduceMin", 0, -128);
  expect_extreme<int32_t>("ReduceMax", -70000, -69999);
  expect_extreme<uint32_t>("ReduceMin", 0x80000000, 0x7fffffff);
  expect_extreme<int64_t>("ReduceMin", 0, -(int64_t{1} << 40));
  expect_extreme<float16>("ReduceMax", float16(-2.0f), float16(-1.0f));
  expect_extreme<double>("ReduceMin", 1.0, -std::numeric_limits<double>::infinity());
}

TEST(Reduce, LongRowsOfHalfPrecision) {
  for (int64_t n : {100, 511, 512, 513, 1300}) {
    Tensor x(ElementType::float16, {1, n});
    std::ranges::fill(x.mutable_data<float16>(), float16(0.5f));
    OpTest("ReduceMean")
        .attribute("keepdims", 0)
        .input(x)
        .constant<int64_t>({1}, {1})
        .expect<float16>({1}, {float16(0.5f)})
        .run();
  }
}

// Numbers that are whole, so that sums have no rounding errors, in any order.
Tensor whole_numbers(Shape shape) {
  Tensor x(ElementType::float32, shape);
  const auto data = x.mutable_data<float>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 37 % 101) - 50;
  return x;
}

// x, of which axis 1 is reduced; [1, n, 1] is all of it.
void expect_sums_and_largest(const Tensor& x) {
  const int64_t outer = x.dim(0), count = x.dim(1), inner = x.dim(2);
  SCOPED_TRACE(std::to_string(outer) + " x " + std::to_string(count) + " x " + std::to_string(inner));
  Tensor sum(ElementType::float32, {outer, inner}), largest(ElementType::float32, {outer, inner});
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      float& total = sum.mutable_data<float>()[static_cast<size_t>(o * inner + i)];
      float& best = largest.mutable_data<float>()[static_cast<size_t>(o * inner + i)];
      total = 0, best = -infinity;
      for (int64_t k = 0; k < count; ++k) {
        const float value = x.data<float>()[static_cast<size_t>((o * count + k) * inner + i)];
        total += value, best = std::max(best, value);
      }
    }
  }
  for (const auto& [op, expected] : {std::pair("ReduceSum", sum), std::pair("ReduceMax", largest)})
    OpTest(op).attribute("keepdims", 0).input(x).constant<int64_t>({1}, {1}).expect(expected).run();
}

TEST(Reduce, RowsThatAreReadInTurns) {
  for (int64_t rows : {2, 3, 4, 5, 6, 7, 9, 21}) {
    for (int64_t n : {33, 1024, 1025, 5000}) expect_sums_and_largest(whole_numbers({rows, n, 1}));
  }
  for (int64_t n : {1, 3, 4, 5, 100, 4095, 4096, 4099, 20001}) expect_sums_and_largest(whole_numbers({1, n, 1}));
}

TEST(Reduce, ColumnsThatAreReadInParts) {
  for (int64_t rows : {64, 67, 90}) {
    for (int64_t columns : {300, 1027}) expect_sums_and_largest(whole_numbers({2, rows, columns}));
  }
  expect_sums_and_largest(whole_numbers({1, 9, 40000}));
}

TEST(Reduce, OldVersions) {
  OpTest("ReduceSum", 11)
      .attribute("axes", std::vector<int64_t>{-1})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2, 1}, {3, 7})
      .run();
  OpTest("ReduceMean", 13)
      .attribute("axes", std::vector<int64_t>{0})
      .attribute("keepdims", 0)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2}, {2, 3})
      .run();
  OpTest("ReduceMax", 1).input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({1, 1}, {4}).run();
}

TEST(Reduce, Errors) {
  EXPECT_EQ(OpTest("ReduceSum").input<float>({2}, {1, 2}).constant<int64_t>({1}, {1}).error(),
            "invalid-attribute in ReduceSum 'tested' (node 0): axis 1 is out of range for rank 1\n"
            "  input 0 'in0' is tensor(float) [2], an input of the graph\n"
            "  input 1 'in1' is tensor(int64) [1], an initializer");
}

TEST(Reduce, AxesMustBeAList) {
  EXPECT_EQ(OpTest("ReduceSum").input<float>({2}, {1, 2}).input<int64_t>({1, 1}, {0}).expect<float>({1}, {3}).error(),
            "shape-mismatch in ReduceSum 'tested' (node 0): the axes must be a list, they have rank 2\n"
            "  input 0 'in0' is tensor(float) [2], an input of the graph\n"
            "  input 1 'in1' is tensor(int64) [1, 1], an input of the graph");
  std::string scalar = OpTest("ReduceL2").input<float>({}, {1}).input<int64_t>({1, 1}, {3}).error();
  EXPECT_TRUE(scalar.starts_with("shape-mismatch in ReduceL2 'tested' (node 0): the axes must be a list")) << scalar;
}

// Rounding errors of long sums stay small where channels lie side by side too.
TEST(Reduce, LongColumns) {
  for (int64_t columns : {1, 8, 16}) {
    Tensor x(ElementType::float32, Shape{1 << 16, columns}), mean(ElementType::float32, Shape{1, columns});
    std::ranges::fill(x.mutable_data<float>(), 0.1f);
    std::ranges::fill(mean.mutable_data<float>(), 0.1f);
    OpTest("ReduceMean").input(x).input<int64_t>({1}, {0}).expect(mean).tolerance(1e-5, 0).run();
  }
}

}  // namespace
}  // namespace tenon
