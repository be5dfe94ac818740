#include "session/placement.h"

namespace tenon {
namespace {

std::string text_of(const std::optional<Dim>& size) { return size && !size->has_unknown() ? size->to_string() : ""; }

// The number if it follows from what is looked up, else the expression; nullopt if it has no text or does not fit.
std::optional<Dim> known_part(const Dim& size, const Dim::Lookup& lookup) {
  try {
    if (std::optional<int64_t> number = size.evaluate(lookup)) return Dim(*number);
  } catch (const Error&) {
    return std::nullopt;
  }
  return size.has_unknown() ? std::nullopt : std::optional(size);
}

// A sum of sizes. Once it does not fit, or is too long an expression, it is nullopt.
void add_to(std::optional<Dim>& sum, const Dim& size) {
  try {
    if (sum) sum = *sum + size;
    if (sum && sum->has_unknown()) sum.reset();
  } catch (const Error&) {
    sum.reset();
  }
}

struct Sums {
  std::optional<Dim> flops = Dim(0), bytes = Dim(0);
};

}  // namespace

void Placement::add(NodePlacement node, std::optional<ops::Cost> cost) {
  if (cost) {
    node.flops = text_of(cost->flops);
    node.bytes = text_of(cost->bytes);
  }
  nodes.push_back(std::move(node));
  costs.push_back(std::move(cost));
}

void Placement::add(ValueCopy copy, std::optional<Dim> bytes) {
  copy.bytes = text_of(bytes);
  copies.push_back(std::move(copy));
  copied.push_back(std::move(bytes));
}

PlacementReport report(const Placement& placement, const std::vector<std::string>& providers,
                       const Dim::Lookup& lookup) {
  PlacementReport report{{}, {}, 0, placement.nodes, placement.copies};
  for (const std::string& name : providers) report.providers.push_back({name, 0, {}, {}, 0});
  std::vector<Sums> sums(providers.size());
  for (size_t i = 0; i < report.nodes.size(); ++i) {
    NodePlacement& node = report.nodes[i];
    std::optional<Dim> flops, bytes;
    if (const std::optional<ops::Cost>& cost = placement.costs[i]) {
      flops = known_part(cost->flops, lookup);
      bytes = known_part(cost->bytes, lookup);
    }
    node.flops = text_of(flops);
    node.bytes = text_of(bytes);
    for (size_t p = 0; p < providers.size(); ++p) {
      if (providers[p] != node.provider) continue;
      ++report.providers[p].nodes;
      if (flops && bytes) {
        add_to(sums[p].flops, *flops);
        add_to(sums[p].bytes, *bytes);
      } else {
        ++report.providers[p].unknown;
      }
    }
  }
  for (size_t p = 0; p < providers.size(); ++p) {
    report.providers[p].flops = text_of(sums[p].flops);
    report.providers[p].bytes = text_of(sums[p].bytes);
  }
  std::optional<Dim> copied = Dim(0);
  for (size_t i = 0; i < report.copies.size(); ++i) {
    std::optional<Dim> bytes = placement.copied[i] ? known_part(*placement.copied[i], lookup) : std::nullopt;
    report.copies[i].bytes = text_of(bytes);
    if (bytes)
      add_to(copied, *bytes);
    else
      ++report.unknown_copies;
  }
  report.copied_bytes = text_of(copied);
  return report;
}

}  // namespace tenon
