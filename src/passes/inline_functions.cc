#include <map>
#include <set>

#include "base/fail.h"
#include "ir/copy_nodes.h"
#include "ir/count.h"
#include "passes/lift.h"

namespace tenon::passes {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;

// Functions that call each other double their nodes with every level, so a small file could ask for any number.
constexpr size_t deepest_call = 64;
constexpr size_t most_inlined_nodes = 1'000'000;

// Attributes of the body that refer to the caller's take its value, the function's default, or go.
void bind_attributes(ir::Graph& graph, const ir::Node& call, const ir::Function& function) {
  std::map<const ir::Value*, ir::Value*> outer;
  for (ir::Node& node : graph.nodes()) {
    std::vector<ir::Attribute> bound;
    for (ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](ir::Graph& subgraph) { bind_attributes(subgraph, call, function); });
      if (attribute.reference.empty()) {
        bound.push_back(std::move(attribute));
        continue;
      }
      const ir::Attribute* source = call.attribute(attribute.reference);
      for (const ir::Attribute& otherwise : function.attribute_defaults) {
        if (!source && otherwise.name == attribute.reference) source = &otherwise;
      }
      if (!source) continue;
      ir::Attribute copy = ir::clone(*source, outer);
      copy.name = attribute.name;
      bound.push_back(std::move(copy));
    }
    node.attributes = std::move(bound);
    adopt_subgraphs(node);
  }
}

void extend_paths(ir::Graph& graph, const std::string& path) {
  for (ir::Node& node : graph.nodes()) {
    if (node.origin) {
      auto origin = std::make_shared<ir::Origin>(*node.origin);
      origin->path = path + (origin->path.empty() ? "" : " > " + origin->path);
      node.origin = std::move(origin);
    }
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](ir::Graph& subgraph) { extend_paths(subgraph, path); });
    }
  }
}

class Inliner {
 public:
  explicit Inliner(ir::Model& model) {
    for (const auto& function : model.functions) {
      functions_.emplace(Key(function->domain, function->name, function->overload), function.get());
      sizes_.emplace(function.get(), ir::count_nodes(*function->body));
    }
  }

  void run(ir::Graph& graph) {
    std::vector<ir::Node*> nodes;
    for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
    for (ir::Node* node : nodes) {
      for (const ir::Attribute& attribute : node->attributes) attribute.for_each_graph([&](ir::Graph& g) { run(g); });
      if (auto found = functions_.find(Key(node->domain, node->op_type, node->overload)); found != functions_.end()) {
        replace(*node, *found->second);
      }
    }
  }

 private:
  void replace(ir::Node& call, const ir::Function& function) {
    Key key(function.domain, function.name, function.overload);
    if (!active_.insert(key).second) {
      throw Error(ErrorCode::cyclic_graph, fmt::format("function '{}' calls itself", function.name))
          .at_node(call.describe());
    }
    if (active_.size() > deepest_call) {
      throw Error(ErrorCode::invalid_model, fmt::format("functions call each other more than {} deep", deepest_call))
          .at_node(call.describe());
    }
    inlined_nodes_ += 1 + sizes_.at(&function);
    if (inlined_nodes_ > most_inlined_nodes) {
      throw Error(ErrorCode::invalid_model,
                  fmt::format("the functions of the model make more than {} nodes", most_inlined_nodes))
          .at_node(call.describe());
    }
    ir::Graph& graph = call.graph();
    std::unique_ptr<ir::Graph> body = function.body->clone();
    if (call.input_count() > body->inputs().size() || call.output_count() > body->outputs().size()) {
      throw Error(
          ErrorCode::invalid_model,
          fmt::format("function '{}' has {} inputs and {} outputs, the node gives {} and takes {}", function.name,
                      body->inputs().size(), body->outputs().size(), call.input_count(), call.output_count()))
          .at_node(call.describe());
    }
    bind_attributes(*body, call, function);
    extend_paths(*body, call.describe());

    // Values of the body get twins in the calling graph; its inputs are the call's.
    ir::Twins twins;
    for (size_t i = 0; i < body->inputs().size(); ++i) twins[body->inputs()[i]] = call.input(i);
    for (const ir::Value& value : body->values()) {
      if (!value.is_graph_input()) {
        ir::Value& twin = graph.add_value(call.name + "/" + value.name, /*fresh=*/true);
        twin.type = value.type;
        // Functions have no initializers, but lifting makes some of attributes.
        if (value.constant()) graph.set_initializer(twin, value.constant());
        twins[&value] = &twin;
      }
    }
    std::vector<ir::Node*> inlined;
    for (const ir::Node& node : body->nodes()) {
      ir::Node& copy = graph.add_node(node.op_type, node.domain, &call);
      copy_node(node, copy, twins);
      inlined.push_back(&copy);
    }
    for (size_t i = 0; i < call.output_count(); ++i) {
      ir::Value* result = call.output(i);
      ir::Value* twin = twin_of(twins, body->outputs()[i]);
      if (!result) continue;
      if (!twin)
        fail(ErrorCode::invalid_model, "output {} of function '{}' is an input that the node leaves out", i,
             function.name);
      // An Identity keeps the name of the call's output, which the graph's outputs may use.
      ir::Node& alias = graph.add_node("Identity", "", &call);
      alias.set_input(0, twin);
      outputs_.emplace_back(&alias, result);
    }
    detach(call);
    for (auto& [alias, result] : outputs_) alias->add_output(result);
    outputs_.clear();
    for (ir::Node* node : inlined) {
      for (const ir::Attribute& attribute : node->attributes) attribute.for_each_graph([&](ir::Graph& g) { run(g); });
      if (auto found = functions_.find(Key(node->domain, node->op_type, node->overload)); found != functions_.end()) {
        replace(*node, *found->second);
      }
    }
    active_.erase(key);
  }

  static void detach(ir::Node& call) {
    call.remove_trailing_outputs(0);
    call.graph().remove_node(call);
  }

  std::map<Key, const ir::Function*> functions_;
  std::map<const ir::Function*, size_t> sizes_;  // in nodes, subgraphs included
  size_t inlined_nodes_ = 0;
  std::set<Key> active_;
  std::vector<std::pair<ir::Node*, ir::Value*>> outputs_;
};

}  // namespace

void inline_functions(ir::Model& model) {
  if (model.functions.empty()) return;
  Inliner(model).run(*model.graph);
  model.functions.clear();
}

}  // namespace tenon::passes
