#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli.h"

namespace {

using namespace tenon;

// Whether the user asked for JSON, known even when the command line could not be parsed.
bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

int report(const Error& error, bool json) {
  if (json)
    fmt::print("{}\n", cli::to_json(error).dump(2));
  else
    fmt::print(stderr, "error: {}\n", error.what());
  return cli::exit_code_for(error.code());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Tenon runs ONNX models and says what it does.", "tenon");
  program.set_version_flag("--version", std::string(tenon::version()));
  program.require_subcommand(1);
  program.footer(
      "Every command takes --json (one document on standard output) and --help.\n"
      "Exit codes: 0 fine, 1 a check failed, 2 wrong usage, 3 the model or an input is broken, 4 a file or provider is "
      "missing.");
  tenon::cli::Action action;
  tenon::cli::add_run(program, action);
  tenon::cli::add_inspect(program, action);
  tenon::cli::add_test(program, action);
  tenon::cli::add_optimize(program, action);
  tenon::cli::add_check(program, action);
  tenon::cli::add_convert(program, action);
  tenon::cli::add_quantize(program, action);
  tenon::cli::add_compile(program, action);
  tenon::cli::add_dynamic(program, action);
  tenon::cli::add_fix(program, action);
  tenon::cli::add_extract(program, action);
  tenon::cli::add_merge(program, action);
  tenon::cli::add_rename(program, action);
  tenon::cli::add_prune(program, action);
  tenon::cli::add_strip(program, action);
  tenon::cli::add_restore(program, action);
  tenon::cli::add_bench(program, action);
  tenon::cli::add_profile(program, action);
  tenon::cli::add_health(program, action);
  tenon::cli::add_compare(program, action);
  tenon::cli::add_bisect(program, action);
  tenon::cli::add_reduce(program, action);
  tenon::cli::add_report(program, action);
  tenon::cli::add_doctor(program, action);
  bool json = wants_json(argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int code = program.exit(error);
    return code == 0 ? tenon::cli::fine : tenon::cli::bad_usage;
  }
  try {
    return action();
  } catch (const tenon::Error& error) {
    return report(error, json);
  } catch (const std::exception& error) {
    return report(tenon::Error(tenon::ErrorCode::internal, error.what()), json);
  }
}
