#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch"), queries = Dim::symbol("queries"), past = Dim::symbol("past"),
          total = Dim::symbol("total");

// A padding mask [batch, total], and the places along its axes as exporters of attention masks compute them.
ModelBuilder with_places() {
  ModelBuilder b;
  b.input("mask", ElementType::int64, SymbolicShape{batch, total});
  b.input("past", ElementType::float32, SymbolicShape{batch, past});
  b.input("x", ElementType::float32, SymbolicShape{batch, queries});
  b.initializer("0", Tensor::scalar(int64_t{0})).initializer("1", Tensor::scalar(int64_t{1}));
  b.initializer("[0]", Tensor({1}, {int64_t{0}})).initializer("[1]", Tensor({1}, {int64_t{1}}));
  b.initializer("[-1]", Tensor({1}, {int64_t{-1}}));
  b.initializer("[1,2,3]", Tensor({3}, {int64_t{1}, int64_t{2}, int64_t{3}}));
  b.initializer("[0,1,2]", Tensor({3}, {int64_t{0}, int64_t{1}, int64_t{2}}));
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "0"}, {"batch"});
  b.node("Gather", {"shape", "1"}, {"queries"});
  b.node("Shape", {"past"}, {"past.shape"});
  b.node("Gather", {"past.shape", "1"}, {"past.length"});
  b.node("Add", {"past.length", "queries"}, {"keys"});
  b.node("Range", {"0", "batch", "1"}, {"rows"});
  b.node("Range", {"0", "keys", "1"}, {"columns"});
  b.node("Unsqueeze", {"rows", "[1,2,3]"}, {"rows.4"});
  b.node("Unsqueeze", {"columns", "[0,1,2]"}, {"columns.4"});
  return b;
}

std::string gathers_of(const std::string& text) {
  std::string lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin + 1);
    if (line.find("mask") != std::string::npos || line.starts_with("y ")) lines += line;
    begin = end + 1;
  }
  return lines;
}

TEST(GatherGrid, NumbersOfElementsOfAFlatMask) {
  ModelBuilder b = with_places();
  b.node("Shape", {"mask"}, {"mask.shape"});
  b.node("Gather", {"mask.shape", "[1]"}, {"width"});
  b.node("Flatten", {"mask"}, {"flat"}).set_attribute({"axis", int64_t{2}});
  b.node("Mul", {"rows.4", "width"}, {"offsets"});
  b.node("Add", {"columns.4", "offsets"}, {"numbers"});
  b.node("Gather", {"flat", "numbers"}, {"y"}, "pick");
  b.output("y");
  EXPECT_EQ(gathers_of(optimized(b, {"gather-grid"})),
            "pick/Gather/tenon_0 = Gather(mask, columns) {axis=1}\n"
            "y = Unsqueeze(pick/Gather/tenon_0, pick/constant/tenon_1)\n");
}

TEST(GatherGrid, ColumnsOfGatherND) {
  ModelBuilder b = with_places();
  b.node("Max", {"rows.4", "columns.4"}, {"both"});
  b.node("Shape", {"both"}, {"grid"});
  for (const char* name : {"rows", "columns"}) {
    b.node("Expand", {std::string(name) + ".4", "grid"}, {std::string(name) + ".all"});
    b.node("Unsqueeze", {std::string(name) + ".all", "[-1]"}, {std::string(name) + ".index"});
  }
  b.node("Concat", {"rows.index", "columns.index"}, {"indices"}).set_attribute({"axis", int64_t{-1}});
  b.node("GatherND", {"mask", "indices"}, {"y"}, "pick");
  b.output("y");
  EXPECT_EQ(gathers_of(optimized(b, {"gather-grid"})),
            "pick/Gather/tenon_0 = Gather(mask, columns) {axis=1}\n"
            "y = Unsqueeze(pick/Gather/tenon_0, pick/constant/tenon_1)\n");
}

TEST(GatherGrid, OneAxisIsNotTwo) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{3, 4});
  b.initializer("flat", Tensor({1}, {int64_t{-1}})).initializer("axis", Tensor({1}, {int64_t{0}}));
  b.initializer("zero", Tensor::scalar(int64_t{0})).initializer("one", Tensor::scalar(int64_t{1}));
  b.input("a", ElementType::float32, SymbolicShape{12});
  b.node("Size", {"a"}, {"count"});
  b.node("Range", {"zero", "count", "one"}, {"numbers"});
  b.node("Reshape", {"x", "flat"}, {"row"});
  b.node("Gather", {"row", "numbers"}, {"y"});
  b.output("y");
  // Places along a row of 12 are none along 3 and 4.
  optimized(b, {"gather-grid"});
  EXPECT_TRUE(last_rewrites().empty());
}

// Grids that read something else than a part of each row.
TEST(GatherGrid, OthersStay) {
  struct Case {
    const char *rows_times, *plus;
  };
  for (const Case& c : {Case{"queries", "[0]"}, Case{"width", "[1]"}}) {
    ModelBuilder b = with_places();
    b.node("Shape", {"mask"}, {"mask.shape"});
    b.node("Gather", {"mask.shape", "[1]"}, {"width"});
    b.node("Flatten", {"mask"}, {"flat"}).set_attribute({"axis", int64_t{2}});
    b.node("Mul", {"rows.4", c.rows_times}, {"offsets"});
    b.node("Add", {"columns.4", "offsets"}, {"sum"});
    b.node("Add", {"sum", c.plus}, {"numbers"});
    b.node("Gather", {"flat", "numbers"}, {"y"}, "pick");
    b.output("y");
    optimized(b, {"gather-grid"});
    EXPECT_TRUE(last_rewrites().empty()) << c.rows_times << " " << c.plus;
  }
}

TEST(GatherGrid, GivesTheSame) {
  // All sizes are 3 and past + queries is 6: longer than the mask. So the mask is as long as both.
  ModelBuilder b = with_places();
  b.node("Concat", {"mask", "mask"}, {"long mask"}).set_attribute({"axis", int64_t{1}});
  b.node("Shape", {"long mask"}, {"mask.shape"});
  b.node("Gather", {"mask.shape", "[1]"}, {"width"});
  b.node("Flatten", {"long mask"}, {"flat"}).set_attribute({"axis", int64_t{2}});
  b.node("Mul", {"rows.4", "width"}, {"offsets"});
  b.node("Add", {"columns.4", "offsets"}, {"numbers"});
  b.node("Gather", {"flat", "numbers"}, {"z"});
  b.node("Cast", {"z"}, {"y"}).set_attribute({"to", int64_t{1}});
  b.output("y");
  EXPECT_EQ(change_by_extended(b), 0);
  EXPECT_NE(optimized(b, {"gather-grid"}).find("Gather(long mask, columns)"), std::string::npos);
}

}  // namespace
}  // namespace tenon
