#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch");

// What Relu reads after updates were scattered over x, whose indices are a constant.
ModelBuilder scattered(const SymbolicShape& data, const SymbolicShape& updates, const Tensor& indices) {
  ModelBuilder b;
  b.input("x", ElementType::float32, data).input("updates", ElementType::float32, updates);
  b.initializer("indices", indices);
  b.node("ScatterND", {"x", "indices", "updates"}, {"filled"}, "scatter");
  b.node("Relu", {"filled"}, {"y"});
  b.output("y");
  return b;
}

// The operators after the pass; also checks that the results are the same.
std::vector<std::string> operators_after(const ModelBuilder& builder, ModelBuilder same) {
  const std::string text = optimized(same, {"scatter-box", "dead-code"});
  if (!last_rewrites().empty()) {
    EXPECT_EQ(change_by_extended(builder), 0);
  }
  std::vector<std::string> operators;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const size_t begin = text.find(" = ", at) + 3, end = text.find('(', begin);
    if (end < text.find('\n', at)) operators.push_back(text.substr(begin, end - begin));
  }
  return operators;
}
template <typename Make>
std::vector<std::string> operators_after(Make make) {
  return operators_after(make(), make());
}
using Operators = std::vector<std::string>;

// [rows, columns, 2]: rows from `row`, columns from `column` on, `apart` places apart.
Tensor box(int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t apart = 1) {
  std::vector<int64_t> numbers;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) numbers.insert(numbers.end(), {row + r * apart, column + c * apart});
  return Tensor(Shape{rows, columns, 2}, std::span<const int64_t>(numbers));
}

TEST(ScatterBox, AllOfTheDataIsWhatItIsFilledWith) {
  EXPECT_EQ(operators_after([] { return scattered({3, 4}, {3, 4}, box(3, 4, 0, 0)); }), (Operators{"Relu"}));
  EXPECT_EQ(operators_after([] {
              return scattered({3, 1, batch}, {3, 1, batch}, box(3, 1, 0, 0));
            }),
            (Operators{"Relu"}));
}

TEST(ScatterBox, PartsOfTheDataStayAround) {
  EXPECT_EQ(operators_after([] {
              return scattered({3, 4}, {3, 3}, box(3, 3, 0, 1));
            }),
            (Operators{"Slice", "Concat", "Relu"}));
  EXPECT_EQ(operators_after([] {
              return scattered({3, 4, batch}, {2, 4, batch}, box(2, 4, 0, 0));
            }),
            (Operators{"Slice", "Concat", "Relu"}));
  EXPECT_EQ(operators_after([] {
              return scattered({5, 6}, {3, 4}, box(3, 4, 1, 1));
            }),
            (Operators{"Slice", "Slice", "Slice", "Concat", "Slice", "Slice", "Concat", "Relu"}));
}

// As exporters write x[:, 1:3] = updates.
TEST(ScatterBox, OfPlacesThatAreComputed) {
  const auto make = [] {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{batch, 4}).input("u", ElementType::float32, {{batch, 3}});
    b.initializer("0", Tensor::scalar(int64_t{0})).initializer("1", Tensor::scalar(int64_t{1}));
    b.initializer("[-1]", Tensor({1}, {int64_t{-1}})).initializer("[1]", Tensor({1}, {int64_t{1}}));
    b.initializer("columns", Tensor({3}, {int64_t{1}, int64_t{2}, int64_t{3}}));
    b.node("Shape", {"u"}, {"shape"});
    b.node("Gather", {"shape", "0"}, {"size"});
    b.node("Range", {"0", "size", "1"}, {"rows"});
    b.node("Unsqueeze", {"rows", "[1]"}, {"rows.2"});
    for (const char* name : {"rows.2", "columns"}) {
      b.node("Expand", {name, "shape"}, {std::string(name) + ".all"});
      b.node("Unsqueeze", {std::string(name) + ".all", "[-1]"}, {std::string(name) + ".index"});
    }
    b.node("Concat", {"rows.2.index", "columns.index"}, {"indices"}).set_attribute({"axis", int64_t{-1}});
    b.node("ScatterND", {"x", "indices", "u"}, {"filled"});
    b.node("Relu", {"filled"}, {"y"});
    b.output("y");
    return b;
  };
  EXPECT_EQ(operators_after(make), (Operators{"Slice", "Concat", "Relu"}));
}

TEST(ScatterBox, OtherPlacesStay) {
  const Operators as_it_was{"ScatterND", "Relu"};
  EXPECT_EQ(operators_after([] { return scattered({5, 6}, {2, 3}, box(2, 3, 0, 0, 2)); }), as_it_was) << "apart";
  EXPECT_EQ(operators_after([] { return scattered({5, 5}, {2, 2}, box(2, 2, 2, 2)); }), as_it_was) << "a small part";
  EXPECT_EQ(operators_after([] { return scattered({3, 4}, {3, 3}, box(3, 3, 0, -3)); }), as_it_was) << "from the end";
  EXPECT_EQ(operators_after([] { return scattered({4, 2}, {4, 2}, box(4, 2, 3, 0, -1)); }), as_it_was) << "reversed";
  const Tensor repeated(Shape{2, 1}, {int64_t{1}, int64_t{1}});
  EXPECT_EQ(operators_after([&] { return scattered({2, 3}, {2, 3}, repeated); }), as_it_was) << "repeated";
  // Row after row of the transposed.
  const Tensor turned(Shape{2, 2, 2},
                      {int64_t{0}, int64_t{0}, int64_t{1}, int64_t{0}, int64_t{0}, int64_t{1}, int64_t{1}, int64_t{1}});
  EXPECT_EQ(operators_after([&] { return scattered({2, 2}, {2, 2}, turned); }), as_it_was) << "transposed";
  ModelBuilder sums = scattered({3, 4}, {3, 4}, box(3, 4, 0, 0));
  for (ir::Node& node : sums.graph().nodes())
    if (node.op_type == "ScatterND") node.set_attribute({"reduction", "add"});
  EXPECT_NE(optimized(sums, {"scatter-box"}).find("ScatterND"), std::string::npos);
}

}  // namespace
}  // namespace tenon
