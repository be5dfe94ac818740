#include "tenon/tools/test_cases.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fail.h"
#include "onnx/model_file.h"
#include "ops/operator.h"
#include "passes/lift.h"
#include "session/custom_operator.h"
#include "tenon/compile.h"
#include "tenon/tools/value_files.h"
#include "tools/random_zeros.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

bool is_case(const fs::path& folder) { return fs::is_regular_file(folder / "model.onnx"); }

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  }
  std::ranges::sort(sets);
  return sets;
}

// How a case's outputs are compared.
struct Comparison {
  Tolerance tolerance;
  std::optional<RandomZeros::Nonzero> nonzero;
};

RandomZeros::Nonzero read_nonzero(const nlohmann::json& json) {
  using Probability = RandomZeros::Nonzero::Probability;
  if (json.is_number()) return {Probability::given, json.get<double>()};
  if (json == "input") return {Probability::input};
  if (json == "1-input") return {Probability::one_less_input};
  fail(ErrorCode::invalid_value, "\"nonzero\" is {}; it may be a probability, \"input\" or \"1-input\"", json.dump());
}

Comparison read_comparison(const fs::path& folder, const Tolerance& otherwise) {
  Comparison comparison;
  comparison.tolerance = otherwise;
  std::ifstream file(folder / "tolerance.json");
  if (!file) return comparison;
  nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    fail(ErrorCode::invalid_value, "'{}' is not a JSON object", (folder / "tolerance.json").string());
  comparison.tolerance.relative = json.value("rtol", otherwise.relative);
  comparison.tolerance.absolute = json.value("atol", otherwise.absolute);
  if (json.contains("nonzero")) comparison.nonzero = read_nonzero(json["nonzero"]);
  return comparison;
}

void forget_seeds(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes()) {
    node.remove_attribute("seed");
    for (const ir::Attribute& attribute : node.attributes) attribute.for_each_graph(forget_seeds);
  }
}

// From a compiled file, which is gone when this returns.
Session load_compiled(const fs::path& model, const SessionOptions& options) {
  struct TemporaryFile {
    fs::path path = fs::temp_directory_path() / fmt::format("tenon_test_{}.tenon", ::getpid());
    ~TemporaryFile() {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  } file;
  compile(model, file.path, options);
  Session session = Session::load(file.path, options);
  for (const std::string& note : session.notes()) {
    if (note.find(file.path.string()) != std::string::npos) fail(ErrorCode::internal, "{}", note);
  }
  return session;
}

Session load(const fs::path& folder, const TestOptions& options, bool with_seeds = true) {
  if (with_seeds && options.compile) return load_compiled(folder / "model.onnx", options.session);
  if (with_seeds && !options.lift_steps) return Session::load(folder / "model.onnx", options.session);
  std::unique_ptr<ir::Model> model = onnx::load_model(folder / "model.onnx");
  if (!with_seeds) {
    forget_seeds(*model->graph);
    for (auto& function : model->functions) forget_seeds(*function->body);
  }
  std::string bytes = onnx::serialize_model(*model);
  const ops::CustomOperatorList custom =
      list_custom_operators(options.session.custom_operators, options.session.custom_operator_libraries);
  int64_t declared = model->opset_imports.version("");
  for (int64_t version = declared + 1; options.lift_steps && declared > 0 && version <= ops::newest_opset; ++version) {
    passes::lift_to_opsets(*model, {{"", version}}, custom);
    bytes = onnx::serialize_model(*model);
    model = onnx::parse_model(std::as_bytes(std::span(bytes)), nullptr, folder);
  }
  return Session::from_bytes(std::as_bytes(std::span(bytes)), options.session, folder);
}

NamedValues read_inputs(const Session& session, const fs::path& set) {
  NamedValues inputs;
  std::vector<ValueInfo> all = session.inputs();
  all.insert(all.end(), session.overridable_initializers().begin(), session.overridable_initializers().end());
  for (size_t i = 0; i < all.size(); ++i) {
    fs::path file = set / fmt::format("input_{}.pb", i);
    if (fs::exists(file)) inputs[all[i].name] = read_value(file, all[i]);
  }
  return inputs;
}

NamedValues read_outputs(const Session& session, const fs::path& set) {
  NamedValues outputs;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const ValueInfo& info = session.outputs()[i];
    fs::path file = set / fmt::format("output_{}.pb", i);
    if (fs::exists(file)) outputs[info.name] = read_value(file, info);
  }
  return outputs;
}

class Problems {
 public:
  void add(std::string_view output, std::string_view text) {
    if (!text.empty()) text_ += fmt::format("{}output '{}': {}", text_.empty() ? "" : "; ", output, text);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string run_data_set(const Session& session, const fs::path& set, const Tolerance& tolerance) {
  NamedValues outputs = session.run(read_inputs(session, set));
  Problems problems;
  for (const auto& [name, expected] : read_outputs(session, set))
    problems.add(name, difference(outputs.at(name), expected, tolerance));
  return problems.text();
}

// `unseeded` is the session's model without seeds, which would draw the same numbers in each run.
std::string run_random_data_set(const Session& session, const Session& unseeded, const fs::path& set,
                                const Comparison& comparison) {
  constexpr int draws = 10000;
  NamedValues inputs = read_inputs(session, set);
  const auto input = session.inputs().empty() ? inputs.end() : inputs.find(session.inputs()[0].name);
  if (input == inputs.end() || !input->second.is_tensor())
    fail(ErrorCode::invalid_value, "random zeros need a first input that is a tensor");
  Problems problems;
  std::map<std::string, RandomZeros> zeros;
  auto add = [&](const NamedValues& drawn) {
    for (auto& [name, counts] : zeros) problems.add(name, counts.add(drawn.at(name)));
  };
  NamedValues expected = read_outputs(session, set);
  for (const auto& [name, value] : expected)
    zeros.emplace(name, RandomZeros(input->second.tensor(), *comparison.nonzero, value, comparison.tolerance));
  add(expected);
  add(session.run(inputs));
  for (int i = 0; i < draws && problems.text().empty(); ++i) add(unseeded.run(inputs));
  if (!problems.text().empty()) return problems.text();
  for (const auto& [name, counts] : zeros) problems.add(name, counts.problem());
  return problems.text();
}

}  // namespace

std::vector<fs::path> find_test_cases(const fs::path& folder) {
  if (!fs::is_directory(folder)) fail(ErrorCode::missing_file, "'{}' is not a folder", folder.string());
  if (is_case(folder)) return {folder};
  std::vector<fs::path> cases;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && is_case(entry.path())) cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

CaseResult run_test_case(const fs::path& folder, const TestOptions& options) {
  using Outcome = CaseResult::Outcome;
  CaseResult result;
  result.name = folder.string();
  auto start = std::chrono::steady_clock::now();
  try {
    std::vector<fs::path> sets = data_sets(folder);
    if (sets.empty()) {
      result.outcome = Outcome::skipped;
      result.reason = "the folder has no test_data_set_*";
      return result;
    }
    const Comparison comparison = read_comparison(folder, options.tolerance);
    const Session session = load(folder, options);
    for (const NodePlacement& node : session.placement()) ++result.nodes[node.provider];
    std::optional<Session> unseeded;
    if (comparison.nonzero) unseeded = load(folder, options, /*with_seeds=*/false);
    for (const fs::path& set : sets) {
      std::string problem = unseeded ? run_random_data_set(session, *unseeded, set, comparison)
                                     : run_data_set(session, set, comparison.tolerance);
      if (problem.empty()) continue;
      result.outcome = Outcome::failed;
      result.reason += fmt::format("{}{}: {}", result.reason.empty() ? "" : "\n", set.filename().string(), problem);
    }
  } catch (const std::exception& error) {
    result.outcome = Outcome::failed;
    result.reason = error.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace tenon::tools
