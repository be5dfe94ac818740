#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tenon/tools/quantize.h"

namespace tenon::tools {
namespace {

constexpr size_t most_lines = 12;  // of a list in the text
constexpr size_t most_worst = 5;   // nodes that lose most

std::string size_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return size < 1e6 ? fmt::format("{:.1f} kB", size / 1e3) : fmt::format("{:.2f} MB", size / 1e6);
}
std::string decibel_text(double sqnr) { return std::isinf(sqnr) ? "exact" : fmt::format("{:.1f} dB", sqnr); }

nlohmann::ordered_json optional_json(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

template <typename List, typename Line>
std::string lines(const List& list, Line line) {
  std::string text;
  for (size_t i = 0; i < std::min(list.size(), most_lines); ++i) text += "  " + line(list[i]) + "\n";
  if (list.size() > most_lines) text += fmt::format("  … and {} more\n", list.size() - most_lines);
  return text;
}

}  // namespace

std::string to_text(const QuantizeReport& report) {
  std::string text;
  for (const std::string& warning : report.warnings) text += "warning: " + warning + "\n";
  text += fmt::format("quantized  {} of {} nodes that could be\n", report.quantized_nodes(), report.nodes.size());
  text += fmt::format(
      "weights    {} before, {} after ({:.2f} times smaller)\n", size_text(report.bytes_before),
      size_text(report.bytes_after),
      static_cast<double>(report.bytes_before) / static_cast<double>(std::max<int64_t>(1, report.bytes_after)));
  if (report.seconds_before && report.seconds_after) {
    text += fmt::format("a run      {:.3f} ms before, {:.3f} ms after ({:.2f} times as fast)\n",
                        1e3 * *report.seconds_before, 1e3 * *report.seconds_after,
                        *report.seconds_before / *report.seconds_after);
  }
  for (const OutputReport& output : report.outputs) {
    text += fmt::format("output     '{}': {}, cosine {:.5f}, off by at most {:.3g}\n", output.output,
                        decibel_text(output.sqnr), output.cosine, output.max_absolute);
  }
  if (report.metric_before)
    text +=
        fmt::format("metric     {:.6g} before, {:.6g} after\n", *report.metric_before, report.metric_after.value_or(0));
  if (report.float_type != ElementType::float32)
    text += fmt::format("float      what stayed float computes in {}\n", name_of(report.float_type));
  text += fmt::format("data       {} calibration samples, compared on {}\n", report.samples, report.evaluated);
  std::vector<const QuantizedNodeReport*> floats;
  for (const QuantizedNodeReport& node : report.nodes) {
    if (!node.is_quantized) floats.push_back(&node);
  }
  std::vector<const QuantizedNodeReport*> worst;
  for (const QuantizedNodeReport& node : report.nodes) {
    if (node.is_quantized && node.own_sqnr && std::isfinite(*node.own_sqnr)) worst.push_back(&node);
  }
  std::ranges::stable_sort(worst, std::less(), [](const QuantizedNodeReport* node) { return *node->own_sqnr; });
  if (worst.size() > most_worst) worst.resize(most_worst);
  if (!worst.empty()) {
    text += "lose most:\n" + lines(worst, [](const QuantizedNodeReport* node) {
              return fmt::format("{}: {}", node->node, decibel_text(*node->own_sqnr));
            });
  }
  if (!floats.empty()) {
    text += "stayed float:\n" +
            lines(floats, [](const QuantizedNodeReport* node) { return node->node + ": " + node->why_float; });
  }
  return text;
}

std::string to_json(const QuantizeReport& report) {
  nlohmann::ordered_json json;
  json["bytes_before"] = report.bytes_before;
  json["bytes_after"] = report.bytes_after;
  json["seconds_before"] = optional_json(report.seconds_before);
  json["seconds_after"] = optional_json(report.seconds_after);
  json["loss"] = report.loss;
  json["metric_before"] = optional_json(report.metric_before);
  json["metric_after"] = optional_json(report.metric_after);
  json["float_type"] = name_of(report.float_type);
  json["samples"] = report.samples;
  json["evaluated"] = report.evaluated;
  json["outputs"] = nlohmann::ordered_json::array();
  for (const OutputReport& output : report.outputs)
    json["outputs"].push_back({{"output", output.output},
                               {"sqnr", optional_json(output.sqnr)},
                               {"cosine", output.cosine},
                               {"max_absolute", output.max_absolute}});
  json["nodes"] = nlohmann::ordered_json::array();
  for (const QuantizedNodeReport& node : report.nodes)
    json["nodes"].push_back({{"node", node.node},
                             {"op_type", node.op_type},
                             {"quantized", node.is_quantized},
                             {"why_float", node.why_float},
                             {"sqnr", optional_json(node.sqnr)},
                             {"own_sqnr", optional_json(node.own_sqnr)}});
  json["ranges"] = nlohmann::ordered_json::array();
  for (const RangeReport& range : report.ranges)
    json["ranges"].push_back({{"tensor", range.tensor},
                              {"seen", {range.seen_low, range.seen_high}},
                              {"range", {range.low, range.high}},
                              {"scale", range.scale},
                              {"zero_point", range.zero_point},
                              {"clipped", range.clipped}});
  json["warnings"] = report.warnings;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tenon::tools
