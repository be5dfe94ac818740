// The report of a quantization as a page that needs nothing else.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tenon/tools/quantize.h"

namespace tenon::tools {
namespace {

constexpr const char* style = R"(
:root { color-scheme: light dark; --line: #8884; --good: #2a8a4a; --bad: #c0392b; --bar: #4a7fd4; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 1rem; }
.fact { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; }
.fact b { display: block; font-size: 1.3rem; }
.warning { border-left: 4px solid var(--bad); padding: .25rem 1rem; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .6rem .25rem 0; vertical-align: top; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.bar { background: var(--bar); display: inline-block; height: .7em; border-radius: 2px; }
.float { color: var(--bad); } .integer { color: var(--good); }
)";

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string fact(const std::string& value, const std::string& what) {
  return fmt::format("<div class=\"fact\"><b>{}</b>{}</div>\n", escaped(value), escaped(what));
}

std::string decibel_text(const std::optional<double>& sqnr) {
  if (!sqnr) return "";
  return std::isinf(*sqnr) ? "exact" : fmt::format("{:.1f} dB", *sqnr);
}

// Long where much is lost.
std::string bar(const std::optional<double>& sqnr) {
  if (!sqnr || std::isinf(*sqnr)) return "";
  return fmt::format("<span class=\"bar\" style=\"width: {:.0f}px\"></span>", std::clamp(2 * (60 - *sqnr), 1.0, 160.0));
}

std::string facts(const QuantizeReport& report) {
  std::string html = "<div class=\"facts\">\n";
  const auto ratio = [](double before, double after) { return after > 0 ? before / after : 0; };
  const double before = static_cast<double>(report.bytes_before), after = static_cast<double>(report.bytes_after);
  html += fact(fmt::format("{:.2f} times smaller", ratio(before, after)),
               fmt::format("weights: {:.2f} MB, {:.2f} MB before", after / 1e6, before / 1e6));
  if (report.seconds_before && report.seconds_after)
    html += fact(
        fmt::format("{:.2f} times as fast", ratio(*report.seconds_before, *report.seconds_after)),
        fmt::format("a run: {:.3f} ms, {:.3f} ms before", 1e3 * *report.seconds_after, 1e3 * *report.seconds_before));
  html += fact(fmt::format("{} of {}", report.quantized_nodes(), report.nodes.size()), "nodes are quantized");
  if (report.float_type != ElementType::float32)
    html += fact(std::string(name_of(report.float_type)), "what stayed float computes in it");
  if (report.metric_before)
    html += fact(fmt::format("{:.6g}", report.metric_after.value_or(0)),
                 fmt::format("metric, {:.6g} before", *report.metric_before));
  html += fact(fmt::format("{}", report.samples), fmt::format("calibration samples; compared on {}", report.evaluated));
  return html + "</div>\n";
}

std::string outputs_table(const QuantizeReport& report) {
  std::string html =
      "<h2>Outputs</h2>\n<table><tr><th>output<th class=\"number\">SQNR<th class=\"number\">cosine<th "
      "class=\"number\">off by at most</tr>\n";
  for (const OutputReport& output : report.outputs)
    html +=
        fmt::format("<tr><td>{}<td class=\"number\">{}<td class=\"number\">{:.6f}<td class=\"number\">{:.4g}</tr>\n",
                    escaped(output.output), decibel_text(output.sqnr), output.cosine, output.max_absolute);
  return html + "</table>\n";
}

std::string nodes_table(const QuantizeReport& report) {
  std::vector<const QuantizedNodeReport*> nodes;
  for (const QuantizedNodeReport& node : report.nodes) nodes.push_back(&node);
  // What loses most first; what is not known last.
  const auto loss = [](const QuantizedNodeReport* node) { return node->own_sqnr.value_or(node->sqnr.value_or(1e9)); };
  std::ranges::stable_sort(nodes, std::less(), loss);
  std::string html =
      "<h2>Nodes, those that lose most first</h2>\n<table><tr><th>node<th>computes in<th class=\"number\">SQNR of what "
      "it makes<th><th class=\"number\">of the outputs, quantized alone</tr>\n";
  for (const QuantizedNodeReport* node : nodes)
    html += fmt::format(
        "<tr><td>{}<td>{}<td class=\"number\">{}<td>{}<td class=\"number\">{}</tr>\n", escaped(node->node),
        node->is_quantized ? "<span class=\"integer\">integers</span>"
                           : fmt::format("<span class=\"float\">float</span>: {}", escaped(node->why_float)),
        decibel_text(node->own_sqnr), bar(node->own_sqnr), decibel_text(node->sqnr));
  return html + "</table>\n";
}

std::string ranges_table(const QuantizeReport& report) {
  if (report.ranges.empty()) return "";
  std::string html =
      "<h2>Ranges</h2>\n<table><tr><th>activation<th class=\"number\">seen<th class=\"number\">codes span<th "
      "class=\"number\">scale<th class=\"number\">zero point<th class=\"number\">clipped</tr>\n";
  for (const RangeReport& range : report.ranges)
    html += fmt::format(
        "<tr><td>{}<td class=\"number\">{:.4g} … {:.4g}<td class=\"number\">{:.4g} … {:.4g}<td "
        "class=\"number\">{:.4g}<td "
        "class=\"number\">{}<td class=\"number\">{:.3f} %</tr>\n",
        escaped(range.tensor), range.seen_low, range.seen_high, range.low, range.high, range.scale, range.zero_point,
        100 * range.clipped);
  return html + "</table>\n";
}

}  // namespace

std::string to_html(const QuantizeReport& report, const std::string& title) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Quantized: {0}</title><style>{1}</style></head><body>\n<h1>{0}, "
      "quantized</h1>\n",
      escaped(title), style);
  for (const std::string& warning : report.warnings)
    html += fmt::format("<div class=\"warning\">{}</div>\n", escaped(warning));
  html += facts(report) + outputs_table(report) + nodes_table(report) + ranges_table(report);
  return html + "</body></html>\n";
}

}  // namespace tenon::tools
