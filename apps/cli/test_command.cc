#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli.h"
#include "tenon/tools/test_cases.h"

namespace tenon::cli {
namespace {

using Outcome = tools::CaseResult::Outcome;

struct TestFlags {
  std::vector<std::string> folders;
  SessionFlags session;
  tools::TestOptions test;
  bool json = false;
};

const char* name_of(Outcome outcome) {
  return outcome == Outcome::passed ? "passed" : outcome == Outcome::failed ? "failed" : "skipped";
}

int test(const TestFlags& flags) {
  std::vector<std::filesystem::path> cases;
  for (const std::string& folder : flags.folders) {
    for (auto& found : tools::find_test_cases(folder)) cases.push_back(std::move(found));
  }
  tools::TestOptions options = flags.test;
  options.session = flags.session.options();
  std::vector<tools::CaseResult> results;
  int passed = 0, failed = 0, skipped = 0;
  {
    Progress progress(cases.size());
    for (const auto& folder : cases) {
      progress.at(results.size(), folder.filename().string());
      results.push_back(tools::run_test_case(folder, options));
      const tools::CaseResult& result = results.back();
      ++(result.outcome == Outcome::passed ? passed : result.outcome == Outcome::failed ? failed : skipped);
    }
  }
  if (flags.json) {
    nlohmann::json json = {
        {"cases", nlohmann::json::array()}, {"passed", passed}, {"failed", failed}, {"skipped", skipped}};
    for (const tools::CaseResult& result : results) {
      json["cases"].push_back({{"name", result.name},
                               {"result", name_of(result.outcome)},
                               {"reason", result.reason},
                               {"seconds", result.seconds},
                               {"nodes", result.nodes}});
    }
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const tools::CaseResult& result : results) {
      if (result.outcome != Outcome::passed)
        fmt::print("{} {}\n  {}\n", name_of(result.outcome), result.name, result.reason);
    }
    fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  }
  return failed == 0 ? fine : check_failed;
}

}  // namespace

void add_test(CLI::App& program, Action& action) {
  auto flags = std::make_shared<TestFlags>();
  CLI::App* command =
      program.add_subcommand("test", "Run ONNX test-case folders and compare with their stored outputs");
  command->add_option("folders", flags->folders, "Folders with model.onnx and test_data_set_*, or folders of such")
      ->required()
      ->type_name("DIR");
  command->add_option("--rtol", flags->test.tolerance.relative, "Relative tolerance (default: 1e-3)");
  command->add_option("--atol", flags->test.tolerance.absolute, "Absolute tolerance (default: 1e-7)");
  command->add_flag("--lift-steps", flags->test.lift_steps,
                    "Bring each model up one opset at a time, writing and reading it in between");
  command->add_flag("--compile", flags->test.compile, "Compile each model to a file, and run that");
  command->add_flag("--json", flags->json, "Print one JSON document");
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return test(*flags); }; });
}

}  // namespace tenon::cli
