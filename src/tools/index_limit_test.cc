#include <gtest/gtest.h>

#include <algorithm>

#include "model_builder.h"
#include "tenon/tools/make_inputs.h"

namespace tenon {
namespace {

// A table of [rows, 4], and integers x of [batch, seq].
ModelBuilder with_table(int64_t rows) {
  ModelBuilder b;
  b.input("x", ElementType::int64, SymbolicShape{Dim::symbol("batch"), Dim::symbol("seq")});
  b.initializer("table", Tensor(ElementType::float32, Shape{rows, 4}));
  return b;
}

int64_t limit_of(const ModelBuilder& b) { return b.session().inputs().at(0).index_limit; }

TEST(IndexLimit, IsTheSizeThatIsIndexed) {
  ModelBuilder b = with_table(1000);
  b.node("Gather", {"table", "x"}, {"y"});
  b.output("y");
  EXPECT_EQ(limit_of(b), 1000);
}

TEST(IndexLimit, FollowsWhatMovesElementsAndTakesTheSmallest) {
  ModelBuilder b = with_table(1000);
  b.initializer("small", Tensor(ElementType::float32, Shape{4, 7})).initializer("axis", Tensor({1}, {int64_t{0}}));
  b.node("Unsqueeze", {"x", "axis"}, {"u"});
  b.node("Cast", {"u"}, {"c"}).set_attribute({"to", static_cast<int64_t>(ElementType::int32)});
  b.node("Gather", {"table", "c"}, {"y"});
  b.node("Gather", {"small", "x"}, {"z"}).set_attribute({"axis", int64_t{-1}});
  b.output("y").output("z");
  EXPECT_EQ(limit_of(b), 7);
}

TEST(IndexLimit, IsZeroForOtherIntegers) {
  ModelBuilder b = with_table(1000);
  b.node("Mul", {"x", "x"}, {"squares"});
  b.node("Gather", {"table", "squares"}, {"y"});
  b.output("y");
  EXPECT_EQ(limit_of(b), 0);
}

TEST(IndexLimit, IsWhereRandomInputsEnd) {
  ModelBuilder b = with_table(1000);
  b.node("Gather", {"table", "x"}, {"y"});
  b.output("y");
  const Session session = b.session();
  tools::InputSources sources;
  sources.shapes = {{"x", Shape{8, 100}}};
  const tools::MadeInputs made = tools::make_inputs(session, sources);
  const auto numbers = made.values.at("x").tensor().data<int64_t>();
  EXPECT_GE(*std::ranges::min_element(numbers), 0);
  EXPECT_LT(*std::ranges::max_element(numbers), 1000);
  EXPECT_GT(*std::ranges::max_element(numbers), 900);
  EXPECT_NO_THROW(session.run(made.values));
}

}  // namespace
}  // namespace tenon
