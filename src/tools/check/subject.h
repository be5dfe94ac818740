// What the rules of `check` look at.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/model_file.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "tenon/tools/check.h"

namespace tenon::tools {

struct Subject {
  const ir::Model& model;  // as the file has it; tensors whose external data is missing have no memory
  std::vector<onnx::ExternalProblem> external_problems;
  ops::CustomOperatorList custom;

  // The same lifted, with functions inlined and types inferred as far as they can be; null where it cannot be brought
  // that far, and then `failure` says why.
  std::unique_ptr<ir::Model> understood;
  std::vector<passes::LiftProblem> lift_problems;
  passes::InferenceResult inference;
  std::optional<Error> failure;
  // Types in `understood` by name, as far as a name has one type in all its graphs.
  std::unordered_map<std::string_view, const ir::Type*> types;

  // The type of a value of `model`, inferred where it can be; not so in the bodies of functions, where it depends on
  // the call.
  const ir::Type& type_of(const ir::Value& value) const;
};

Subject understand(const ir::Model& model, std::vector<onnx::ExternalProblem> external_problems,
                   ops::CustomOperatorList custom);

// Where a rule puts what it finds.
class Findings {
 public:
  Findings(std::vector<Finding>& list, std::string code, Severity severity)
      : list_(list), code_(std::move(code)), severity_(severity) {}

  void add(std::string reason, std::string fix = {}) { add_at("", "", std::move(reason), std::move(fix)); }
  void at_node(const ir::Node& node, std::string reason, std::string fix = {}) {
    add_at(node.describe(), "", std::move(reason), std::move(fix));
  }
  void on_tensor(std::string tensor, std::string reason, std::string fix = {}) {
    add_at("", std::move(tensor), std::move(reason), std::move(fix));
  }
  void add_at(std::string node, std::string tensor, std::string reason, std::string fix = {}) {
    list_.push_back({severity_, code_, std::move(node), std::move(tensor), std::move(reason), std::move(fix)});
  }

 private:
  std::vector<Finding>& list_;
  std::string code_;
  Severity severity_;
};

struct Rule {
  CheckRule about;
  void (*find)(const Subject& subject, Findings& findings);
};

// The rules by what they look at; check.cc puts them into one list.
std::span<const Rule> structure_rules();  // names, order, what is not used
std::span<const Rule> operator_rules();   // operators, opsets, types and shapes
std::span<const Rule> value_rules();      // weights, element types, sizes

// Calls visit(graph, imports) for the main graph, its subgraphs and the bodies of functions.
void for_each_graph(const ir::Model& model,
                    const std::function<void(const ir::Graph&, const ir::OpsetImports&)>& visit);
// The same for nodes.
void for_each_node(const ir::Model& model, const std::function<void(const ir::Node&, const ir::OpsetImports&)>& visit);
// Every tensor that the model holds: initializers and those in attributes. `holder` names the initializer or the node.
void for_each_constant(const ir::Model& model,
                       const std::function<void(const ir::Constant&, const ir::Node* holder)>& visit);

// Whether a tensor's content is there to be read.
inline bool has_content(const Tensor& tensor) { return tensor.raw() != nullptr || tensor.elements() == 0; }

}  // namespace tenon::tools
