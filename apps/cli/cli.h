// What the commands of `tenon` share.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tenon/tenon.h"
#include "tenon/tools/make_inputs.h"
#include "tenon/tools/profile.h"

namespace tenon::cli {

// Exit codes.
enum Exit { fine = 0, check_failed = 1, bad_usage = 2, broken_input = 3, missing = 4 };

int exit_code_for(ErrorCode code);

// A command adds itself to the program and puts its work into `action`, which runs when it was chosen.
using Action = std::function<int()>;
void add_run(CLI::App& program, Action& action);
void add_inspect(CLI::App& program, Action& action);
void add_test(CLI::App& program, Action& action);
void add_optimize(CLI::App& program, Action& action);
void add_compile(CLI::App& program, Action& action);
void add_compare(CLI::App& program, Action& action);
void add_bisect(CLI::App& program, Action& action);
void add_reduce(CLI::App& program, Action& action);
void add_check(CLI::App& program, Action& action);
void add_convert(CLI::App& program, Action& action);
void add_quantize(CLI::App& program, Action& action);
void add_dynamic(CLI::App& program, Action& action);
void add_fix(CLI::App& program, Action& action);
void add_extract(CLI::App& program, Action& action);
void add_merge(CLI::App& program, Action& action);
void add_rename(CLI::App& program, Action& action);
void add_prune(CLI::App& program, Action& action);
void add_strip(CLI::App& program, Action& action);
void add_restore(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_profile(CLI::App& program, Action& action);
void add_health(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);
void add_doctor(CLI::App& program, Action& action);

// Options that every command which opens a session has.
struct SessionFlags {
  int threads = 0, spin = -1;
  bool parallel_branches = false, flush_denormals = false, strict = false;
  std::vector<std::string> providers, decompose, disabled, config, libraries;
  std::string level = "all", memory = "normal", precision = "full";
  void add_to(CLI::App& command);
  SessionOptions options() const;
};

// What --strict sets.
constexpr const char* strict_key = "session.disable_cpu_ep_fallback";
constexpr const char* strict_help =
    "A node that would run on the CPU, beside another provider, is an error with the reason";

// --custom-operators LIBRARY, into `libraries`.
void add_custom_operators(CLI::App& command, std::vector<std::string>& libraries);

// The two sides of "NAME=VALUE"; `form` is what an error says that the option takes.
std::pair<std::string, std::string> split(const std::string& text, const char* option, const char* form);

// Where inputs come from: --input NAME=FILE, --shape NAME=1x3x224x224, --dim NAME=SIZE and --seed.
struct InputFlags {
  std::vector<std::string> files, shapes, dims;
  uint64_t seed = 0;
  // `group` is the heading in the help text.
  void add_to(CLI::App& command, const std::string& group = "Inputs (what is not given is random)");
  // --shape and --dim only.
  void add_shapes_to(CLI::App& command, const std::string& group);
  tools::InputSources sources() const;
  // The inputs of a run. Says on standard error what is random, unless quiet.
  NamedValues make(const Session& session, bool quiet) const;
};

// "assumed batch = 1, seq = 1"; "" where there are none.
std::string assumed_text(const std::vector<std::string>& dims);

nlohmann::json to_json(const ValueInfo& info);
nlohmann::json to_json(const PlacementReport& report);
nlohmann::json to_json(const Error& error);

// "tensor(float) [batch, 3]"
std::string type_text(const ValueInfo& info);
// Totals, copies, then one line a node.
void print_placement(const PlacementReport& report);

// What a profile says, as tables: operators, and the slowest nodes.
void print_profile(const tools::ProfileSummary& summary);
nlohmann::json to_json(const tools::ProfileSummary& summary);

// A line on the terminal that says how far long work is; nothing when stderr is not a terminal, or in the first second.
// Cheap to tell often.
class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress();
  void at(size_t done, const std::string& what);

 private:
  size_t total_;
  double start_;
  double last_ = 0;  // shown; 0: never
};

}  // namespace tenon::cli
