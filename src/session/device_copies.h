#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"
#include "provider/provider.h"

namespace tenon {

// Whether all that the node reads of an input is its shape, wherever its content is.
bool reads_shape_only(const ir::Node& node, size_t input);

bool is_control_flow(const ir::Node& node, std::string_view op_type);

// As which input of a Loop's or Scan's body its output i comes back in the next iteration.
std::optional<size_t> carried_input(const ir::Node& node, size_t output);

// Which provider runs a node of a graph that a device is to run in part, and why not one before it.
class DevicePlacement {
 public:
  // Finds out, and puts a tenon.Copy wherever a value is read in another memory than it is made in. The graph's inputs
  // and outputs, and those of subgraphs, are on the host.
  // `support`, one of the providers or null, was not asked for: it runs what only the host can, which are sizes and
  // control flow, and nothing else.
  DevicePlacement(ir::Graph& graph, std::span<const Provider* const> providers, const Provider* support);

  // Empty where the providers' own answers decide.
  const std::string& reason_for_host(const ir::Node& node) const;
  // Whether it is one of the copies that were put in.
  bool is_copy(const ir::Node& node) const { return inserted_.contains(&node); }
  // Whether the provider may have the node.
  bool allows(const Provider& provider, const ir::Node& node) const;

 private:
  void visit(ir::Graph& graph);
  const Provider* provider_of(const ir::Node& node);
  bool computes_sizes(const ir::Node& node) const;
  bool passes_on_host_value(const ir::Node& node) const;
  ir::Value& copied(ir::Value& value, bool to_device, ir::Graph& graph, ir::Node* before);
  ir::Value& add_copy(ir::Value& value, bool to_device, ir::Graph& graph, ir::Node* before);

  std::span<const Provider* const> providers_;
  const Provider* support_;
  std::unordered_map<const ir::Node*, std::string> host_nodes_;
  std::unordered_set<const ir::Node*> inserted_;
  enum class Where : unsigned char { host, sizes, device };  // sizes: made of shapes alone, on the host
  std::unordered_map<const ir::Value*, Where> places_;       // what is not here is on the host
  std::unordered_map<const ir::Value*, std::unordered_map<const ir::Graph*, ir::Value*>> copies_;
};

}  // namespace tenon
