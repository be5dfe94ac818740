// Reverse-mode differentiation: a Gradient node is written as nodes that compute it.
#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "ops/gradient/derivatives.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Gradients of gradients double the graph each time, so a small file could ask for any number of nodes.
constexpr size_t most_nodes = 500'000;

class Differentiation {
 public:
  explicit Differentiation(Decomposition& d) : d_(d), graph_(d.node().graph()) {}

  void run() {
    for (const std::string& name : d_.node().strings_attribute("xs")) xs_.push_back(&named(name));
    std::vector<ir::Value*> given = xs_;
    for (const std::string& name : d_.node().strings_attribute("zs")) given.push_back(&named(name));
    ir::Value* y = &named(d_.node().string_attribute("y", ""));
    std::vector<ir::Node*> nodes = nodes_between(given, y);
    y = substitute(given, nodes, y);
    keep_dependent(nodes);
    add_to(y, filled(y, 1));
    for (size_t i = nodes.size(); i-- > 0;) differentiate(*nodes[i]);
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (!d_.wants_output(i)) continue;
      auto found = gradients_.find(xs_[i]);
      d_.output(i, found == gradients_.end() ? filled(xs_[i], 0) : found->second);
    }
  }

 private:
  ir::Value& named(const std::string& name) const {
    for (ir::Value& value : graph_.values()) {
      if (value.name == name) return value;
    }
    fail(ErrorCode::unknown_name, "the graph has no tensor '{}' to differentiate", name);
  }

  // The nodes that y is computed by from the given tensors, each after those it reads.
  std::vector<ir::Node*> nodes_between(const std::vector<ir::Value*>& given, ir::Value* y) const {
    std::vector<ir::Node*> order;
    std::set<const ir::Node*> seen;
    std::vector<std::pair<ir::Node*, size_t>> walk;  // and the next input to look at
    auto visit = [&](ir::Value* value) {
      ir::Node* producer = value && &value->graph() == &graph_ ? value->producer() : nullptr;
      if (producer && std::ranges::find(given, value) == given.end() && seen.insert(producer).second)
        walk.emplace_back(producer, 0);
    };
    visit(y);
    while (!walk.empty()) {
      auto& [node, next] = walk.back();
      if (next < node->input_count()) {
        visit(node->input(next++));
      } else {
        order.push_back(node);
        walk.pop_back();
      }
    }
    return order;
  }

  // Puts the node's inputs in the place of the tensors that the attributes name, by copies of the nodes that read them
  // where the two differ. Returns what y is then.
  ir::Value* substitute(const std::vector<ir::Value*>& given, std::vector<ir::Node*>& nodes, ir::Value* y) {
    std::map<const ir::Value*, ir::Value*> in_place_of;
    for (size_t i = 0; i < given.size(); ++i) {
      ir::Value* input = d_.node().input(i);
      if (!input) fail(ErrorCode::missing_input, "no input is given for '{}'", given[i]->name);
      if (input != given[i]) in_place_of[given[i]] = input;
      if (i < xs_.size()) xs_[i] = input;
    }
    if (in_place_of.empty()) return y;
    auto now = [&](ir::Value* value) {
      auto found = in_place_of.find(value);
      return found == in_place_of.end() ? value : found->second;
    };
    for (ir::Node*& node : nodes) {
      if (std::ranges::none_of(node->inputs(), [&](ir::Value* value) { return value != now(value); })) continue;
      ir::Node* copy = copied(*node, now);
      for (size_t i = 0; i < node->output_count(); ++i) {
        if (node->output(i)) in_place_of[node->output(i)] = copy->output(i);
      }
      node = copy;
    }
    return now(y);
  }

  template <typename Now>
  ir::Node* copied(const ir::Node& node, const Now& now) {
    if (!node.domain.empty()) throw_no_rule(node);
    std::vector<ir::Value*> inputs;
    for (ir::Value* value : node.inputs()) inputs.push_back(now(value));
    if (node.output_count() == 0) throw_no_rule(node);
    ir::Node* copy = &d_.add_node(node.op_type, inputs);
    std::map<const ir::Value*, ir::Value*> outer;
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](ir::Graph&) { throw_no_rule(node); });
      copy->set_attribute(ir::clone(attribute, outer));
    }
    // Other sizes may come in, but types and ranks stay.
    for (size_t i = 0; i < node.output_count(); ++i) {
      ir::Value* output = d_.add_output(*copy);
      if (!node.output(i)) continue;
      output->type = node.output(i)->type;
      if (!output->type.shape) continue;
      for (Dim& dim : *output->type.shape) dim = Dim::unknown();
    }
    return copy;
  }

  // Only the nodes through which a change of an x reaches y.
  void keep_dependent(std::vector<ir::Node*>& nodes) {
    dependent_.insert(xs_.begin(), xs_.end());
    std::erase_if(nodes, [&](const ir::Node* node) {
      if (std::ranges::none_of(node->inputs(), [&](ir::Value* value) { return dependent_.count(value) > 0; }))
        return true;
      dependent_.insert(node->outputs().begin(), node->outputs().end());
      return false;
    });
  }

  void differentiate(const ir::Node& node) {
    if (graph_.nodes().size() > most_nodes)
      fail(ErrorCode::unsupported, "the graph has more than {} nodes with its gradients", most_nodes);
    auto found = gradients_.find(node.output(0));
    if (found == gradients_.end()) return;
    // Another Gradient that could not be written out yet is later, and then this one.
    if (node.op_type == "Gradient" && node.domain == ai_onnx_training && &node != &d_.node())
      d_.give_up("it is of another Gradient");
    const DerivativeRule* rule = find_derivative(node);
    if (!rule || node.output_count() != 1) throw_no_rule(node);
    const Differentiated n{d_, node, found->second};
    for (size_t i = 0; i < node.input_count(); ++i) {
      ir::Value* x = node.input(i);
      if (!x || !dependent_.count(x)) continue;
      if (i >= rule->inputs.size() || !rule->inputs[i]) continue;
      Term gradient = rule->inputs[i](n);
      const ir::Value* y = node.output(0);
      const bool same_shape = x->type.shape && y->type.shape && *x->type.shape == *y->type.shape;
      add_to(x, rule->broadcasts && !same_shape ? sum_to_shape(d_, gradient, n.x(i)) : gradient);
    }
  }

  void add_to(ir::Value* value, Term gradient) {
    Term& sum = gradients_[value];
    sum = sum ? sum + gradient : gradient;
  }

  // A tensor of one number in the shape of `like`.
  Term filled(ir::Value* like, double number) {
    if (like->type.element == ElementType::undefined)
      d_.give_up(fmt::format("the type of '{}' is not known", like->name));
    if (!types::floats.contains(like->type.element)) {
      fail(ErrorCode::type_mismatch, "'{}' is {}; only floating-point tensors are differentiated", like->name,
           like->type.to_string());
    }
    Term term = Differentiated::term(d_, like);
    return d_.add("Expand", {term.number(number), shape_of(term)});
  }

  [[noreturn]] static void throw_no_rule(const ir::Node& node) {
    const bool rewritten = node.origin && node.origin->op_type != node.op_type;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}{} cannot be differentiated", rewritten ? node.op_type + " of " : "", node.describe()),
                "operators that can: " + differentiable_operators());
  }

  Decomposition& d_;
  ir::Graph& graph_;
  std::vector<ir::Value*> xs_;
  std::set<const ir::Value*> dependent_;
  std::map<const ir::Value*, Term> gradients_;
};

void decompose_gradient(Decomposition& d) {
  try {
    Differentiation(d).run();
  } catch (Error& error) {
    throw error.at_node(d.node().describe());
  }
}

void infer_gradient(Inference& i) {
  const size_t xs = i.node().strings_attribute("xs").size(), zs = i.node().strings_attribute("zs").size();
  if (i.input_count() != xs + zs) {
    i.fail_with(ErrorCode::invalid_model,
                fmt::format("it has {} inputs, but xs and zs name {} tensors", i.input_count(), xs + zs));
  }
  if (i.output_count() > xs) {
    i.fail_with(ErrorCode::invalid_model,
                fmt::format("it has {} outputs, but xs names {} tensors", i.output_count(), xs));
  }
  for (size_t k = 0; k < i.output_count(); ++k) {
    if (i.has_input(k)) i.same_as_input(k, k);
  }
}

}  // namespace

void define_gradient(OperatorList& list) {
  list.add("Gradient", {1}, ai_onnx_training)
      .variadic_input("Inputs", "T1", /*at_least=*/1, /*same_types=*/false)
      .variadic_output("Outputs", "T2", /*at_least=*/1, /*same_types=*/false)
      .types("T1", types::movable)
      .types("T2", types::floats)
      .required_attribute("xs", AttributeKind::strings)
      .required_attribute("y", AttributeKind::string)
      .attribute("zs", AttributeKind::strings)
      .infer(infer_gradient)
      .decompose(decompose_gradient);
}

}  // namespace tenon::ops
