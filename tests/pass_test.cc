#include "pass_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/print.h"
#include "ir/verify.h"
#include "ops/dispatch.h"
#include "passes/constants.h"
#include "providers/cpu/cpu_provider.h"
#include "session/evaluate.h"

namespace tenon {
namespace {

std::vector<Rewrite> rewrites;

// Without the first line, indentation and node names.
std::string short_text(const ir::Graph& graph) {
  std::string text = ir::to_text(graph), result;
  text.erase(0, text.find('\n') + 1);
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.find('\n', start);
    std::string line = text.substr(start + 2, end - start - 2);
    if (size_t name = line.find("  # "); name != std::string::npos) line.erase(name);
    result += line + "\n";
    start = end + 1;
  }
  return result;
}

Tensor random_tensor(const ValueInfo& info, std::mt19937& random) {
  Shape shape;
  for (const std::string& size : info.shape) shape.push_back(std::isdigit(size[0]) ? std::stoll(size) : 3);
  Tensor tensor(info.element, shape);
  ops::dispatch<float, double, float16, bfloat16, int32_t, int64_t, bool>(info.element, [&]<typename T>() {
    std::uniform_real_distribution<float> floats(-3, 3);
    for (T& item : tensor.mutable_data<T>()) {
      if constexpr (std::is_integral_v<T>)
        item = static_cast<T>(random() % 3);
      else
        item = T(floats(random));
    }
  });
  return tensor;
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> result;
  ops::dispatch<float, double, float16, bfloat16>(tensor.type(), [&]<typename T>() {
    for (T item : tensor.data<T>()) {
      if constexpr (std::is_same_v<T, double>)
        result.push_back(item);
      else
        result.push_back(static_cast<float>(item));
    }
  });
  return result;
}

}  // namespace

double change_by_extended(const ModelBuilder& builder) {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  Session plain = builder.session(options);
  options.level = OptimizationLevel::extended;
  Session fused = builder.session(options);
  EXPECT_FALSE(fused.rewrites().empty());
  std::mt19937 random(1);
  NamedValues inputs;
  for (const ValueInfo& info : plain.inputs()) inputs.emplace(info.name, random_tensor(info, random));
  NamedValues expected = plain.run(inputs), actual = fused.run(inputs);
  double most = 0;
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(value.tensor().shape(), actual.at(name).tensor().shape());
    std::vector<double> a = numbers(value.tensor()), b = numbers(actual.at(name).tensor());
    double largest = 0, off = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(std::isnan(a[i]), std::isnan(b[i]));
      largest = std::max(largest, std::abs(a[i]));
      off = std::max(off, std::abs(a[i] - b[i]));
    }
    most = std::max(most, off / std::max(largest, 1e-30));
  }
  return most;
}

const std::vector<Rewrite>& last_rewrites() { return rewrites; }

std::string optimized(ModelBuilder& builder, const std::vector<std::string>& passes,
                      const std::vector<std::string>& keep) {
  static CpuProvider cpu;
  const Provider* providers[] = {&cpu};
  passes::OptimizerOptions options;
  options.verify = true;
  options.keep = keep;
  options.evaluate = [&](const ir::Node& node) {
    return evaluate(node, providers, *ThreadPool::shared(), system_allocator());
  };
  for (const OptimizationPass& pass : optimization_passes()) {
    if (std::ranges::find(passes, pass.name) == passes.end()) options.disabled.emplace_back(pass.name);
  }
  ir::record_origins(builder.model());
  passes::constants_to_initializers(builder.graph(), system_allocator());
  ir::verify_and_sort(builder.graph());
  rewrites = passes::optimize(builder.graph(), options);
  EXPECT_TRUE(passes::optimize(builder.graph(), options).empty()) << "a second time changes more";
  return short_text(builder.graph());
}

}  // namespace tenon
