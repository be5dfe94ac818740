#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "table.h"

namespace tenon::cli {
namespace {

bool is_number(const std::string& estimate) {
  return !estimate.empty() && estimate.find_first_not_of("0123456789") == std::string::npos;
}

// A number, an expression, or null where nothing is known.
nlohmann::json estimate_json(const std::string& estimate) {
  if (estimate.empty()) return nullptr;
  if (is_number(estimate)) return std::stoull(estimate);
  return estimate;
}

nlohmann::json to_json(const NodePlacement& node) {
  nlohmann::json declined = nlohmann::json::array();
  for (const auto& [provider, reason] : node.declined) declined.push_back({{"provider", provider}, {"reason", reason}});
  return {{"node", node.node},
          {"op_type", node.op_type},
          {"provider", node.provider},
          {"kernel", node.kernel},
          {"declined", declined},
          {"flops", estimate_json(node.flops)},
          {"bytes", estimate_json(node.bytes)}};
}

// What a total leaves out.
std::string unknown_text(int64_t unknown) { return unknown == 0 ? "" : fmt::format("without {} unknown", unknown); }

constexpr size_t widest_estimate = 16, widest_total = 26;

void print_totals(const PlacementReport& report) {
  Table table;
  table.column("provider", Table::Align::left)
      .column("nodes")
      .column("FLOPs", Table::Align::right, widest_total)
      .column("bytes", Table::Align::right, widest_total)
      .column("", Table::Align::left);
  for (const ProviderTotals& p : report.providers) {
    table.row({p.provider, std::to_string(p.nodes), estimate_text(p.flops), estimate_text(p.bytes, "B"),
               unknown_text(p.unknown)});
  }
  if (!report.copies.empty()) {
    table.row({"copies", std::to_string(report.copies.size()), "", estimate_text(report.copied_bytes, "B"),
               unknown_text(report.unknown_copies)});
  }
  table.print();
}

void print_nodes(const std::vector<NodePlacement>& nodes) {
  Table table;
  table.column("provider", Table::Align::left)
      .column("kernel", Table::Align::left, 24)
      .column("FLOPs", Table::Align::right, widest_estimate)
      .column("bytes", Table::Align::right, widest_estimate)
      .column("node", Table::Align::left);
  for (const NodePlacement& node : nodes) {
    table.row({node.provider, node.kernel, estimate_text(node.flops), estimate_text(node.bytes, "B"), node.node});
    for (const auto& [provider, reason] : node.declined) table.remark(fmt::format("not {}: {}", provider, reason));
  }
  table.print();
}

void print_copies(const std::vector<ValueCopy>& copies) {
  Table table;
  table.column("from", Table::Align::left)
      .column("to", Table::Align::left)
      .column("bytes", Table::Align::right, widest_estimate)
      .column("copied tensor", Table::Align::left);
  for (const ValueCopy& copy : copies) table.row({copy.from, copy.to, estimate_text(copy.bytes, "B"), copy.value});
  table.print();
}

}  // namespace

nlohmann::json to_json(const PlacementReport& report) {
  nlohmann::json providers = nlohmann::json::array(), copies = nlohmann::json::array(), nodes = nlohmann::json::array();
  for (const ProviderTotals& p : report.providers) {
    providers.push_back({{"provider", p.provider},
                         {"nodes", p.nodes},
                         {"flops", estimate_json(p.flops)},
                         {"bytes", estimate_json(p.bytes)},
                         {"nodes_of_unknown_shape", p.unknown}});
  }
  for (const ValueCopy& copy : report.copies)
    copies.push_back(
        {{"tensor", copy.value}, {"from", copy.from}, {"to", copy.to}, {"bytes", estimate_json(copy.bytes)}});
  for (const NodePlacement& node : report.nodes) nodes.push_back(to_json(node));
  return {{"providers", providers},
          {"copies",
           {{"count", report.copies.size()},
            {"bytes", estimate_json(report.copied_bytes)},
            {"of_unknown_shape", report.unknown_copies},
            {"tensors", copies}}},
          {"nodes", nodes}};
}

void print_placement(const PlacementReport& report) {
  const bool symbolic = std::ranges::any_of(
      report.nodes, [](const NodePlacement& node) { return !node.flops.empty() && !is_number(node.flops); });
  fmt::print("placement: {}; FLOPs and bytes are estimates{}\n",
             count_text(static_cast<int64_t>(report.nodes.size()), "node"),
             symbolic ? " (--dim and --shape make them numbers)" : "");
  print_totals(report);
  if (!report.copies.empty()) {
    fmt::print("\n");
    print_copies(report.copies);
  }
  fmt::print("\n");
  print_nodes(report.nodes);
}

}  // namespace tenon::cli
