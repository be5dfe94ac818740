#include "pass_test.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/print.h"
#include "ir/verify.h"
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

}  // namespace

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
