#include "tenon/tools/test_cases.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "onnx/model_file.h"
#include "ops/operator.h"
#include "passes/lift.h"
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

struct Comparison {
  Tolerance tolerance;
  bool random_zeros = false;

  std::string operator()(const Value& actual, const Value& expected) const {
    return (random_zeros ? difference_but_for_zeros : difference)(actual, expected, tolerance);
  }
};

Comparison read_comparison(const fs::path& folder, const Tolerance& otherwise) {
  Comparison comparison{otherwise};
  std::ifstream file(folder / "tolerance.json");
  if (!file) return comparison;
  nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    fail(ErrorCode::invalid_value, "'{}' is not a JSON object", (folder / "tolerance.json").string());
  comparison.tolerance.relative = json.value("rtol", otherwise.relative);
  comparison.tolerance.absolute = json.value("atol", otherwise.absolute);
  comparison.random_zeros = json.value("random_zeros", false);
  return comparison;
}

Session load_in_steps(const fs::path& folder, const SessionOptions& options) {
  std::unique_ptr<ir::Model> model = onnx::load_model(folder / "model.onnx");
  std::string bytes = onnx::serialize_model(*model);
  int64_t declared = model->opset_imports.version("");
  for (int64_t version = declared + 1; declared > 0 && version <= ops::newest_opset; ++version) {
    passes::lift_to_opset(*model, version);
    bytes = onnx::serialize_model(*model);
    model = onnx::parse_model(std::as_bytes(std::span(bytes)), nullptr, folder);
  }
  return Session::from_bytes(std::as_bytes(std::span(bytes)), options, folder);
}

std::string run_data_set(const Session& session, const fs::path& set, const Comparison& compare) {
  NamedValues inputs;
  std::vector<ValueInfo> all = session.inputs();
  all.insert(all.end(), session.overridable_initializers().begin(), session.overridable_initializers().end());
  for (size_t i = 0; i < all.size(); ++i) {
    fs::path file = set / fmt::format("input_{}.pb", i);
    if (fs::exists(file)) inputs[all[i].name] = read_value(file, all[i]);
  }
  NamedValues outputs = session.run(inputs);
  std::string problems;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const ValueInfo& info = session.outputs()[i];
    fs::path file = set / fmt::format("output_{}.pb", i);
    if (!fs::exists(file)) continue;
    std::string text = compare(outputs.at(info.name), read_value(file, info));
    if (!text.empty()) problems += fmt::format("{}output '{}': {}", problems.empty() ? "" : "; ", info.name, text);
  }
  return problems;
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
    const Comparison compare = read_comparison(folder, options.tolerance);
    Session session = options.lift_steps ? load_in_steps(folder, options.session)
                                         : Session::load(folder / "model.onnx", options.session);
    for (const fs::path& set : sets) {
      std::string problem = run_data_set(session, set, compare);
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
