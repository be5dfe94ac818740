#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "kernels/gemm_bf16/gemm_bf16.h"
#include "model_builder.h"
#include "tenon/compile.h"

namespace tenon {
namespace {

Tensor wave(const Shape& shape) {
  Tensor result(ElementType::float32, shape);
  float at = 0;
  for (float& number : result.mutable_data<float>()) number = std::sin(at += 0.7f);
  return result;
}

// A product with weights and one without.
ModelBuilder products() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("rows"), 40});
  b.initializer("w", wave({40, 40}));
  b.node("MatMul", {"x", "w"}, {"h"}, "with_weights");
  b.node("Transpose", {"x"}, {"t"});
  b.node("MatMul", {"h", "t"}, {"y"}, "without");
  b.output("y");
  return b;
}

SessionOptions fast() {
  SessionOptions options;
  options.precision = Precision::fast;
  return options;
}

std::string kernel_of(const Session& session, std::string_view node) {
  for (const NodePlacement& placed : session.placement())
    if (placed.node.find(node) != std::string::npos) return placed.kernel;
  return "";
}

// As a share of the largest value of b.
double largest_difference(const Tensor& a, const Tensor& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.data<float>().size(); ++i) {
    difference = std::max(difference, std::fabs(double{a.data<float>()[i]} - b.data<float>()[i]));
    size = std::max(size, std::fabs(double{b.data<float>()[i]}));
  }
  return difference / size;
}

// Of less precision than floats, and more than nothing; where the processor is no faster so, the same bits and a note.
void expect_rounded(const Session& session, const Session& full) {
  const NamedValues inputs = {{"x", wave({33, 40})}};
  const double difference = largest_difference(session.run(inputs).at("y").tensor(), full.run(inputs).at("y").tensor());
  const bool can = kernels::fast_bf16_kernels() != nullptr;
  EXPECT_EQ(kernel_of(session, "with_weights").ends_with(", bf16"), can);
  EXPECT_FALSE(kernel_of(session, "without").ends_with(", bf16"));
  EXPECT_FALSE(kernel_of(full, "with_weights").ends_with(", bf16"));
  EXPECT_EQ(difference > 1e-5, can) << difference;
  EXPECT_LT(difference, 2e-2);
  EXPECT_EQ(session.notes().empty(), can);
  if (!can) {
    EXPECT_TRUE(session.notes().front().starts_with("precision 'fast' changes nothing")) << session.notes()[0];
  }
}

TEST(Precision, FastRoundsInProductsWithWeights) { expect_rounded(products().session(fast()), products().session()); }

TEST(Precision, FilesAreNotSharedBetweenPrecisionsAndKeepTheirs) {
  const auto folder = std::filesystem::temp_directory_path() / ("tenon_precision_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto model = folder / "m.onnx", compiled = folder / "m.tenon";
  std::ofstream(model, std::ios::binary) << products().bytes();
  const Session full = Session::load(model), rounded = Session::load(model, fast());
  expect_rounded(rounded, full);
  compile(model, compiled, fast());
  expect_rounded(Session::load(compiled, fast()), full);
  std::filesystem::remove_all(folder);
}

TEST(Precision, NothingToRound) {
  ModelBuilder b;
  b.input("x", ElementType::float32).node("Relu", {"x"}, {"y"});
  b.output("y");
  ASSERT_EQ(b.session(fast()).notes().size(), 1u);
  EXPECT_TRUE(b.session().notes().empty());
}

}  // namespace
}  // namespace tenon
