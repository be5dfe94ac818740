#include <algorithm>
#include <limits>
#include <set>

#include "base/fail.h"
#include "ops/operator.h"
#include "ops/type_history.h"
#include "tools/check/subject.h"

namespace tenon::tools {
namespace {

bool is_function(const ir::Model& model, const ir::Node& node) {
  return std::ranges::any_of(model.functions, [&](const auto& function) {
    return function->domain == node.domain && function->name == node.op_type && function->overload == node.overload;
  });
}

const ops::Operator* known_operator(const Subject& subject, const ir::Node& node) {
  if (is_function(subject.model, node)) return nullptr;
  return ops::operators().find(ir::canonical_domain(node.domain), node.op_type);
}

void find_unknown_operators(const Subject& subject, Findings& findings) {
  for (const auto& [node, _, error] : subject.lift_problems) {
    if (error.code() == ErrorCode::unknown_operator)
      findings.add_at(node, "", error.message(),
                      "bring the operator along with --custom-operators, or correct its name");
  }
}

// Problems that nodes have with their operator's rules, which lifting and inference find, by kind.
template <ErrorCode... codes>
void find_node_problems(const Subject& subject, Findings& findings) {
  auto report = [&](const std::string& node, const Error& error) {
    if (((error.code() == codes) || ...)) findings.add_at(node, error.tensor(), error.message(), error.hint());
  };
  for (const auto& [node, _, error] : subject.lift_problems) report(node, error);
  for (const auto& [node, error] : subject.inference.problems) report(node->describe(), error);
}

bool has_rule_of_its_own(ErrorCode code) {
  return code == ErrorCode::unknown_operator || code == ErrorCode::type_mismatch || code == ErrorCode::shape_mismatch ||
         code == ErrorCode::invalid_attribute;
}

void find_other_node_problems(const Subject& subject, Findings& findings) {
  auto report = [&](const std::string& node, const Error& error) {
    if (!has_rule_of_its_own(error.code())) findings.add_at(node, error.tensor(), error.message(), error.hint());
  };
  for (const auto& [node, _, error] : subject.lift_problems) report(node, error);
  for (const auto& [node, error] : subject.inference.problems) report(node->describe(), error);
  if (subject.failure) report(subject.failure->node(), *subject.failure);
}

void find_shape_conflicts(const Subject& subject, Findings& findings) {
  for (const auto& [value, declared, inferred] : subject.inference.shape_conflicts) {
    findings.add_at(value->producer() ? value->producer()->describe() : "", value->name,
                    fmt::format("it is declared as {}, the node makes it {}", to_string(declared), to_string(inferred)),
                    "correct or remove the declared shape (value_info)");
  }
}

void find_missing_imports(const Subject& subject, Findings& findings) {
  std::set<std::string> reported;
  for_each_node(subject.model, [&](const ir::Node& node, const ir::OpsetImports& imports) {
    const std::string domain(ir::canonical_domain(node.domain));
    if (imports.version(domain) > 0 || !reported.insert(domain).second) return;
    const int64_t newest = ops::newest_opset_of(domain);
    findings.at_node(
        node,
        fmt::format("the model imports no operator set of '{}', which it is from", domain.empty() ? "ai.onnx" : domain),
        newest > 0 ? fmt::format("import the version it was written for; the newest is {}", newest)
                   : "import the version it was written for");
  });
}

void find_too_new_operators(const Subject& subject, Findings& findings) {
  for_each_node(subject.model, [&](const ir::Node& node, const ir::OpsetImports& imports) {
    const ops::Operator* op = known_operator(subject, node);
    const int64_t opset = op ? imports.version(op->domain) : 0;
    if (!op || opset == 0 || opset >= op->versions.front()) return;
    findings.at_node(node,
                     fmt::format("{} came with opset {}, the model imports {}", op->name, op->versions.front(), opset),
                     fmt::format("import opset {}", op->versions.front()));
  });
}

void find_unknown_opsets(const Subject& subject, Findings& findings) {
  for (const auto& [domain, version] : subject.model.opset_imports.entries()) {
    const int64_t newest = ops::newest_opset_of(ir::canonical_domain(domain));
    if (newest > 0 && version > newest)
      findings.add(fmt::format("it imports opset {} of '{}', newer than {}, the newest that is known", version,
                               domain.empty() ? "ai.onnx" : domain, newest),
                   "the newest operators are taken to mean what they mean there; update Tenon");
  }
}

struct Deprecated {
  std::string_view domain, name;
  int64_t since, until;  // the first and the last opset
  std::string_view instead;
};
constexpr int64_t forever = std::numeric_limits<int64_t>::max();
constexpr Deprecated deprecated[] = {
    {"", "Upsample", 10, forever, "Resize"},
    {"", "Scatter", 11, forever, "ScatterElements"},
    {"", "GroupNormalization", 18, 20, "that of opset 21: runtimes disagree about scale and bias before"},
    {"ai.onnx.ml", "TreeEnsembleClassifier", 5, forever, "TreeEnsemble"},
    {"ai.onnx.ml", "TreeEnsembleRegressor", 5, forever, "TreeEnsemble"},
};

void find_deprecated_operators(const Subject& subject, Findings& findings) {
  for_each_node(subject.model, [&](const ir::Node& node, const ir::OpsetImports& imports) {
    if (is_function(subject.model, node)) return;
    const std::string_view domain = ir::canonical_domain(node.domain);
    const int64_t opset = imports.version(domain);
    for (const Deprecated& old : deprecated) {
      if (old.domain == domain && old.name == node.op_type && old.since <= opset && opset <= old.until)
        findings.at_node(node, fmt::format("{} is deprecated in opset {}, which the model imports", old.name, opset),
                         fmt::format("use {}", old.instead));
    }
  });
}

// The first version that allows a type where an older one does not, 0 if none does.
int first_version_with(const ops::Operator& op, int after,
                       bool (*allows)(const ops::Operator&, int, size_t, const ir::Type&), size_t i,
                       const ir::Type& type) {
  for (int version : op.versions) {
    if (version > after && allows(op, version, i, type)) return version;
  }
  return 0;
}

void find_too_new_types(const Subject& subject, Findings& findings) {
  for_each_node(subject.model, [&](const ir::Node& node, const ir::OpsetImports& imports) {
    const ops::Operator* op = known_operator(subject, node);
    const int64_t opset = op ? imports.version(op->domain) : 0;
    if (!op || opset < op->versions.front()) return;
    const int version = op->version_at(opset);
    auto look = [&](std::span<ir::Value* const> values, auto allows) {
      for (size_t i = 0; i < values.size(); ++i) {
        if (!values[i]) continue;
        const ir::Type& type = subject.type_of(*values[i]);
        if (!type.known() || allows(*op, version, i, type)) continue;
        // One that no version allows is a mismatch.
        if (const int first = first_version_with(*op, version, allows, i, type)) {
          findings.add_at(node.describe(), values[i]->name,
                          fmt::format("version {} of {} has no {} there; version {} is the first", version, op->name,
                                      type.name(), first),
                          fmt::format("import opset {}, or cast", first));
          return true;
        }
      }
      return false;
    };
    if (!look(node.inputs(), ops::allows_input)) look(node.outputs(), ops::allows_output);
  });
}

void find_random_operators(const Subject& subject, Findings& findings) {
  for_each_node(subject.model, [&](const ir::Node& node, const ir::OpsetImports&) {
    const ops::Operator* op = known_operator(subject, node);
    if (!op || !op->is_random) return;
    if (op->name == "Dropout" && !node.input(2)) return;  // passes everything on, unless it is told to train
    const ir::Attribute* seed = node.attribute("seed");
    findings.at_node(node,
                     seed ? "its results depend on chance; with its seed they repeat, but differ between runtimes"
                          : "its results depend on chance and differ from run to run",
                     "for inference, remove it or feed what it makes as an input");
  });
}

void find_shadowed_operators(const Subject& subject, Findings& findings) {
  for (const auto& function : subject.model.functions) {
    const std::string_view domain = ir::canonical_domain(function->domain);
    if (!ops::operators().find(domain, function->name)) continue;
    findings.add(fmt::format("function '{}' has the name of an operator of {}: runtimes differ in which one they take",
                             function->name, domain.empty() ? "ai.onnx" : domain),
                 "put the function into a domain of its own");
  }
}

struct Feature {
  int64_t ir_version;
  std::string_view what;
  bool (*used)(const ir::Model& model);
};

template <ElementType... types>
bool uses_type(const ir::Model& model) {
  bool used = false;
  auto is_one = [](ElementType type) { return ((type == types) || ...); };
  for_each_constant(
      model, [&](const ir::Constant& constant, const ir::Node*) { used = used || is_one(constant.tensor.type()); });
  for_each_graph(model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    for (const ir::Value& value : graph.values()) used = used || is_one(value.type.element);
  });
  return used;
}

bool has_free_initializers(const ir::Model& model) {
  return std::ranges::any_of(model.graph->initializers(), [](const ir::Value* v) { return !v->is_graph_input(); });
}

bool has_sparse_initializers(const ir::Model& model) {
  return std::ranges::any_of(model.graph->initializers(),
                             [](const ir::Value* v) { return v->sparse_constant() != nullptr; });
}

bool has_functions(const ir::Model& model) { return !model.functions.empty(); }

bool has_optionals(const ir::Model& model) {
  bool used = false;
  for_each_graph(model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    for (const ir::Value& value : graph.values()) used = used || value.type.kind == ir::Type::Kind::optional;
  });
  return used;
}

bool has_function_defaults(const ir::Model& model) {
  return std::ranges::any_of(model.functions, [](const auto& f) { return !f->attribute_defaults.empty(); });
}

bool has_overloads(const ir::Model& model) {
  return std::ranges::any_of(model.functions, [](const auto& f) { return !f->overload.empty(); });
}

// As onnx.proto lists them.
constexpr Feature features[] = {
    {4, "initializers that are no inputs", has_free_initializers},
    {4, "bfloat16", uses_type<ElementType::bfloat16>},
    {6, "sparse initializers", has_sparse_initializers},
    {8, "model-local functions", has_functions},
    {8, "optional values", has_optionals},
    {9, "defaults of function attributes", has_function_defaults},
    {9, "8-bit floats",
     uses_type<ElementType::float8e4m3fn, ElementType::float8e4m3fnuz, ElementType::float8e5m2,
               ElementType::float8e5m2fnuz>},
    {10, "4-bit integers", uses_type<ElementType::int4, ElementType::uint4>},
    {10, "overloads of functions", has_overloads},
    {11, "float4e2m1", uses_type<ElementType::float4e2m1>},
    {12, "float8e8m0", uses_type<ElementType::float8e8m0>},
    {13, "2-bit integers", uses_type<ElementType::int2, ElementType::uint2>},
    {14, "6-bit floats", uses_type<ElementType::float6e2m3, ElementType::float6e3m2>},
};

void find_ir_version_problems(const Subject& subject, Findings& findings) {
  const int64_t version = subject.model.ir_version;
  for (const Feature& feature : features) {
    if (version < feature.ir_version && feature.used(subject.model))
      findings.add(fmt::format("it has IR version {}, but {} came with {}", version, feature.what, feature.ir_version),
                   fmt::format("set the IR version to {}", feature.ir_version));
  }
}

constexpr Rule rules[] = {
    {{"unknown-operator", Severity::error, "operators that neither ONNX nor the model defines"},
     find_unknown_operators},
    {{"invalid-attribute", Severity::error, "attributes that are missing, unknown, or of the wrong kind or value"},
     find_node_problems<ErrorCode::invalid_attribute>},
    {{"type-mismatch", Severity::error, "types that an operator does not take, or that differ from those declared"},
     find_node_problems<ErrorCode::type_mismatch>},
    {{"shape-mismatch", Severity::error, "shapes that cannot be computed with"},
     find_node_problems<ErrorCode::shape_mismatch>},
    {{"invalid-node", Severity::error, "nodes that break their operator's rules in other ways"},
     find_other_node_problems},
    {{"missing-opset-import", Severity::error, "domains whose operators are used and that are not imported"},
     find_missing_imports},
    {{"operator-too-new", Severity::error, "operators that came after the opset that is imported"},
     find_too_new_operators},
    {{"type-too-new", Severity::error, "types that operators take since a later opset only"}, find_too_new_types},
    {{"unknown-opset", Severity::warning, "opsets newer than the newest that is known"}, find_unknown_opsets},
    {{"shape-conflict", Severity::warning, "declared shapes that the nodes contradict"}, find_shape_conflicts},
    {{"deprecated-operator", Severity::warning, "operators that ONNX has withdrawn"}, find_deprecated_operators},
    {{"shadowed-operator", Severity::warning, "functions that have the name of an operator"}, find_shadowed_operators},
    {{"ir-version", Severity::warning, "what the model's IR version did not have yet"}, find_ir_version_problems},
    {{"random-operator", Severity::note, "operators whose results depend on chance"}, find_random_operators},
};

}  // namespace

std::span<const Rule> operator_rules() { return rules; }

}  // namespace tenon::tools
