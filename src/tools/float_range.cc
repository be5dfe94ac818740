#include "tools/float_range.h"

#include <algorithm>

#include "ir/graph.h"
#include "tools/half_tensors.h"
#include "tools/known_types.h"

namespace tenon::tools {
namespace {

constexpr int64_t most_bytes = int64_t{1} << 30;  // of values that one run returns

int64_t bytes_of(const ir::Type& type) {
  constexpr int64_t unknown = 1 << 20;
  if (!type.shape) return unknown;
  const std::optional<int64_t> count = element_count(*type.shape).evaluate([](const std::string&) { return 1; });
  return count ? *count * 4 : unknown;
}

void run_with_outputs(const OnnxModel& model, const std::vector<std::string>& names, const NamedValues& inputs,
                      std::map<std::string, double>& result) {
  std::unique_ptr<ir::Model> copy = model.ir().clone();
  ir::Graph& graph = *copy->graph;
  for (ir::Value& value : graph.values()) {
    const bool is_output = std::ranges::find(graph.outputs(), &value) != graph.outputs().end();
    if (value.producer() && !is_output && std::ranges::find(names, value.name) != names.end())
      graph.add_output(value, ir::Type::tensor(ElementType::float32));
  }
  SessionOptions plain;
  plain.level = OptimizationLevel::none;
  for (const auto& [name, value] : model.with(std::move(copy)).open(plain).run(inputs)) {
    if (value.is_tensor() && value.tensor().type() == ElementType::float32)
      result[name] = largest_magnitude(value.tensor());
  }
}

}  // namespace

std::map<std::string, double> largest_magnitudes(const OnnxModel& model, const NamedValues& inputs) {
  const KnownTypes known = known_types(model.ir());
  std::map<std::string, double> result;
  std::vector<std::string> names;
  int64_t bytes = 0;
  const auto flush = [&] {
    if (!names.empty()) run_with_outputs(model, names, inputs, result);
    names.clear();
    bytes = 0;
  };
  for (const ir::Node& node : model.ir().graph->nodes()) {
    for (const ir::Value* value : node.outputs()) {
      if (!value) continue;
      auto type = known.types.find(value->name);
      if (type == known.types.end() || type->second.element != ElementType::float32 || !type->second.is_tensor())
        continue;
      names.push_back(value->name);
      bytes += bytes_of(type->second);
      if (bytes > most_bytes) flush();
    }
  }
  flush();
  return result;
}

}  // namespace tenon::tools
