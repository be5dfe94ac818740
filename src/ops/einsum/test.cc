#include <algorithm>
#include <map>

#include "op_test.h"

namespace tenon {
namespace {

OpTest einsum(const char* equation) {
  OpTest test("Einsum");
  test.attribute("equation", equation);
  return test;
}

TEST(Einsum, OneOperand) {
  einsum("ij->ji").input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({2, 2}, {1, 3, 2, 4}).run();
  einsum("ii").input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({}, {5}).run();
  einsum("...ii->...i").input<int32_t>({1, 2, 2}, {1, 2, 3, 4}).expect<int32_t>({1, 2}, {1, 4}).run();
  einsum("ij -> i").input<double>({2, 2}, {1, 2, 3, 4}).expect<double>({2}, {3, 7}).run();
  einsum("ba").input<float>({2, 1}, {1, 2}).expect<float>({1, 2}, {1, 2}).run();
}

TEST(Einsum, Products) {
  einsum("ij,jk")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2, 1}, {1, 10})
      .expect<float>({2, 1}, {21, 43})
      .run();
  einsum("bij,bjk->bik")
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 2, 1}, {1, 10})
      .expect<float>({1, 1, 1}, {21})
      .run();
  einsum("i,j->ij")
      .input<uint8_t>({2}, {2, 3})
      .input<uint8_t>({2}, {5, 100})
      .expect<uint8_t>({2, 2}, {10, 200, 15, 44})
      .run();
  einsum("...i,...i->...")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({1, 2}, {1, 10})
      .expect<float>({2}, {21, 43})
      .run();
  einsum("a,b,ab->")
      .input<float16>({1}, {float16(2)})
      .input<float16>({2}, {float16(1), float16(2)})
      .input<float16>({1, 2}, {float16(3), float16(4)})
      .expect<float16>({}, {float16(22)})
      .run();
}

// Whatever the order of the axes, the sums are those of plain loops over all of them.
TEST(Einsum, AnyOrderOfAxes) {
  struct Case {
    const char *a, *b, *y;
  };
  const Case cases[] = {{"bhid", "bhjd", "bhij"}, {"bihd", "bjhd", "bhij"}, {"bhij", "bjhd", "bihd"},
                        {"bhid", "hdj", "bjhi"},  {"bid", "jdb", "ijb"},    {"bij", "bij", "b"},
                        {"dib", "jd", "bij"},     {"bhd", "bhd", "hb"},     {"id", "jd", "ji"},
                        {"ib", "jb", "bij"},      {"bi", "bj", "bij"},      {"bi", "bj", "ibj"},
                        {"db", "dbj", "bj"},      {"ibd", "db", "bi"},      {"db", "db", "b"}};
  const std::map<char, int64_t> sizes{{'b', 2}, {'h', 3}, {'i', 4}, {'j', 5}, {'d', 6}};
  const auto shape_of = [&](const std::string& labels) {
    Shape shape;
    for (char label : labels) shape.push_back(sizes.at(label));
    return shape;
  };
  for (const auto& [a, b, y] : cases) {
    Tensor left(ElementType::float32, shape_of(a)), right(ElementType::float32, shape_of(b)),
        sums(ElementType::float32, shape_of(y));
    for (size_t i = 0; i < left.data<float>().size(); ++i)
      left.mutable_data<float>()[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < right.data<float>().size(); ++i)
      right.mutable_data<float>()[i] = static_cast<float>(i % 5) - 2;
    std::ranges::fill(sums.mutable_data<float>(), 0.0f);
    for (int64_t n = 0; n < 2 * 3 * 4 * 5 * 6; ++n) {
      std::map<char, int64_t> index;
      int64_t rest = n;
      for (const auto& [label, size] : sizes) {
        index[label] = rest % size;
        rest /= size;
      }
      const std::string used = std::string(a) + b;
      const bool again = std::ranges::any_of(
          sizes, [&](const auto& s) { return used.find(s.first) == std::string::npos && index.at(s.first) != 0; });
      if (again) continue;
      const auto at = [&](const std::string& labels) {
        int64_t result = 0;
        for (char label : labels) result = result * sizes.at(label) + index.at(label);
        return static_cast<size_t>(result);
      };
      sums.mutable_data<float>()[at(y)] += left.data<float>()[at(a)] * right.data<float>()[at(b)];
    }
    const std::string equation = std::string(a) + "," + b + "->" + y;
    SCOPED_TRACE(equation);
    einsum(equation.c_str()).input(left).input(right).expect(sums).run();
  }
}

TEST(Einsum, Errors) {
  auto first_line = [](std::string text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(
      first_line(einsum("ij->ik").input<float>({1, 1}, {1}).error()),
      "invalid-attribute in Einsum 'tested' (node 0): the output of the equation 'ij->ik' has 'k', which no input has");
  EXPECT_EQ(first_line(einsum("i,i").input<float>({2}, {1, 2}).input<float>({3}, {1, 2, 3}).error()),
            "shape-mismatch in Einsum 'tested' (node 0): the sizes of 'i' must be equal: 2 against 3");
  EXPECT_EQ(
      first_line(einsum("i").input<float>({1, 1}, {1}).error()),
      "invalid-attribute in Einsum 'tested' (node 0): term 0 of the equation 'i' has 1 labels; the input has rank 2");
}

}  // namespace
}  // namespace tenon
