#include "passes/infer.h"

#include <unordered_set>

#include "base/fail.h"
#include "ir/count.h"
#include "ops/check_types.h"
#include "ops/stand_in.h"

namespace tenon::passes {
namespace {

using ops::Fact;

class GraphInference {
 public:
  GraphInference(InferenceResult& result, const ir::Graph& graph, Problems problems)
      : result_(result), problems_(problems), work_left_(50'000 + 100 * ir::count_nodes(graph)) {}

  void run(ir::Graph& graph) {
    for (ir::Value* value : graph.initializers()) {
      Fact fact;
      if (value->constant()) {
        fact = Fact::of(value->constant()->tensor);
        if (value->is_graph_input()) fact.constant = nullptr;  // callers may replace it
      } else {
        fact.type = value->type;
      }
      if (value->is_graph_input() && value->type.known()) fact.type = value->type;
      set(*value, std::move(fact));
    }
    for (ir::Value* value : graph.inputs()) {
      // Some exporters write "?" for a size that they do not know: two of them need not be equal.
      for (size_t i = 0; value->type.shape && i < value->type.shape->size(); ++i) {
        if ((*value->type.shape)[i].symbol_name() == "?") (*value->type.shape)[i] = Dim::unknown();
      }
      if (!result_.facts.count(value)) result_.facts[value].type = value->type;
    }
    for (ir::Node& node : graph.nodes()) {
      try {
        infer_node(node);
      } catch (Error& error) {
        if (problems_ == Problems::thrown) throw error.at_node(node.describe_here());
        collect(node, error);
      }
    }
  }

 private:
  void set(ir::Value& value, Fact fact) {
    value.type = fact.type;
    result_.facts[&value] = std::move(fact);
  }

  // Once per node: loops infer their bodies more than once. Models ask for a shape and have a branch for each, so that
  // shapes that do not fit are no problem there.
  void collect(ir::Node& node, const Error& error) {
    const bool in_branch = node.graph().owner() && node.graph().owner()->op_type == "If";
    const bool may_never_happen =
        in_branch && (error.code() == ErrorCode::shape_mismatch || error.code() == ErrorCode::invalid_value);
    if (!may_never_happen && reported_.insert(&node).second) result_.problems.push_back({&node, error});
    keep_declared(node);
  }

  void keep_declared(ir::Node& node) {
    for (ir::Value* value : node.outputs()) {
      if (!value) continue;
      Fact fact;
      fact.type = declared_type(*value);
      set(*value, std::move(fact));
    }
  }

  // The type the model gives the value. A loop's body is inferred more than once, and what an earlier round found must
  // not count as declared in the next.
  const ir::Type& declared_type(const ir::Value& value) {
    return declared_.try_emplace(&value, value.type).first->second;
  }

  const Fact& fact_of(const ir::Value& value) { return result_.facts[&value]; }

  void infer_node(ir::Node& node) {
    if (work_left_-- == 0) fail(ErrorCode::unsupported, "the loops around it are nested too deep to infer its types");
    const ops::Operator* op = ops::operator_of(node);
    if (!op) fail(ErrorCode::unknown_operator, "Tenon does not know operator {}", node.op_type);
    if (ops::is_stand_in(*op)) {
      keep_declared(node);
      return;
    }
    if (std::string problem = check_node(*op, node); !problem.empty()) {
      throw Error(
          problem.find("attribute") == std::string::npos ? ErrorCode::invalid_model : ErrorCode::invalid_attribute,
          problem);
    }
    std::vector<const Fact*> inputs;
    for (const ir::Value* value : node.inputs()) inputs.push_back(value ? &fact_of(*value) : nullptr);
    ops::check_input_types(*op, node, inputs);
    std::vector<Fact> outputs(node.output_count());
    ops::Inference::InferSubgraph subgraphs = [&](std::string_view name, std::span<const Fact> facts) {
      return infer_subgraph(node, name, facts);
    };
    ops::Inference inference(node, inputs, outputs, &subgraphs);
    if (op->infer_types) op->infer_types(inference);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (ir::Value* value = node.output(i)) finish_output(node, *value, std::move(outputs[i]));
    }
  }

  std::vector<Fact> infer_subgraph(ir::Node& node, std::string_view name, std::span<const Fact> inputs) {
    const ir::Attribute* attribute = node.attribute(name);
    if (!attribute || !std::holds_alternative<std::unique_ptr<ir::Graph>>(attribute->value)) return {};
    ir::Graph& graph = *std::get<std::unique_ptr<ir::Graph>>(attribute->value);
    for (size_t i = 0; i < graph.inputs().size() && i < inputs.size(); ++i) {
      Fact fact = inputs[i];
      ir::Value& value = *graph.inputs()[i];
      if (!fact.type.known()) fact.type = declared_type(value);
      set(value, std::move(fact));
    }
    run(graph);
    std::vector<Fact> outputs;
    for (const ir::Value* value : graph.outputs()) outputs.push_back(fact_of(*value));
    return outputs;
  }

  // Joins what was inferred with what the model declares. Element types must agree; a shape the nodes contradict is
  // noted and dropped, as it often is a leftover of an exporter.
  void finish_output(const ir::Node& node, ir::Value& value, Fact inferred) {
    const ir::Type& declared = declared_type(value);
    if (!inferred.type.known()) {
      inferred.type = declared;
    } else if (!ir::same_kind(declared, inferred.type)) {
      throw Error(ErrorCode::type_mismatch,
                  fmt::format("the model declares it as {}, {} makes it {}", declared.to_string(), node.op_type,
                              inferred.type.to_string()),
                  "correct or remove the declared type (value_info)")
          .on_tensor(value.name);
    } else if (declared.is_tensor() && declared.shape) {
      merge_shape(node, value, *declared.shape, inferred);
    }
    set(value, std::move(inferred));
  }

  void merge_shape(const ir::Node& node, const ir::Value& value, const SymbolicShape& declared, Fact& inferred) {
    if (!inferred.type.shape) {
      inferred.type.shape = declared;
      return;
    }
    SymbolicShape& shape = *inferred.type.shape;
    bool conflict = shape.size() != declared.size();
    for (size_t i = 0; !conflict && i < shape.size(); ++i) {
      conflict = shape[i].is_known() && declared[i].is_known() && !(shape[i] == declared[i]);
    }
    if (conflict) {
      result_.notes.push_back(fmt::format("tensor '{}' is declared as {}, {} makes it {}; the latter is used",
                                          value.name, to_string(declared), node.describe(), to_string(shape)));
      result_.shape_conflicts.push_back({&value, declared, shape});
      return;
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].has_unknown()) shape[i] = declared[i];
    }
  }

  InferenceResult& result_;
  Problems problems_;
  std::unordered_set<const ir::Node*> reported_;
  // Nodes that may still be inferred. Each loop infers its body some times, loops in loops multiply that.
  size_t work_left_;
  std::unordered_map<const ir::Value*, ir::Type> declared_;
};

}  // namespace

InferenceResult infer_types(ir::Graph& graph, Problems problems) {
  InferenceResult result;
  infer_types(graph, result, problems);
  return result;
}

void infer_types(ir::Graph& graph, InferenceResult& result, Problems problems) {
  GraphInference(result, graph, problems).run(graph);
}

}  // namespace tenon::passes
