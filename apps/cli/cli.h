// What the commands of `tenon` share.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tenon/tenon.h"
#include "tenon/tools/make_inputs.h"

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
void add_doctor(CLI::App& program, Action& action);

// Options that every command which opens a session has.
struct SessionFlags {
  int threads = 0;
  std::vector<std::string> providers, decompose, disabled, libraries;
  std::string level = "all";
  void add_to(CLI::App& command);
  SessionOptions options() const;
};

// --custom-operators LIBRARY, into `libraries`.
void add_custom_operators(CLI::App& command, std::vector<std::string>& libraries);

// What --input NAME=FILE, --shape NAME=1x3x224x224 and --dim NAME=SIZE say.
tools::InputSources input_sources(const std::vector<std::string>& inputs, const std::vector<std::string>& shapes,
                                  const std::vector<std::string>& dims, uint64_t seed);

nlohmann::json to_json(const ValueInfo& info);
nlohmann::json to_json(const NodePlacement& node);
nlohmann::json to_json(const Error& error);

// "tensor(float) [batch, 3]"
std::string type_text(const ValueInfo& info);
// The nodes by provider, then one line a node.
void print_placement(const std::vector<NodePlacement>& placement);
// "1.5 MB"
std::string size_text(int64_t bytes);

// A line on the terminal that says how far long work is; nothing when stderr is not a terminal, or in the first second.
class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress();
  void at(size_t done, const std::string& what);

 private:
  size_t total_;
  double start_;
  bool shown_ = false;
};

}  // namespace tenon::cli
