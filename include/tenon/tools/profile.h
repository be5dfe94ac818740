#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tenon/session.h"

namespace tenon::tools {

// One run with all its steps. Times are of the clock of StepProfile.
struct ProfiledRun {
  int64_t start_ns = 0, duration_ns = 0;
  std::vector<StepProfile> steps;
};

struct ProfileOptions {
  int64_t runs = 3, warmup = 3;           // those before are not measured
  int device_repeats = 0;                 // RunOptions::device_repeats
  std::function<void(int64_t)> progress;  // is told how many runs are done, those to warm up too
};

// Runs the model and measures every step, which makes the runs themselves a little slower. Throws what a run throws.
std::vector<ProfiledRun> profile(const Session& session, const NamedValues& inputs, const ProfileOptions& options = {});

// What an operator, or a node, did in all the runs.
struct ProfileTotals {
  std::string op_type, provider;
  std::string node, kernel;                  // "" in the list of operators
  std::vector<std::string> inputs, outputs;  // of the node's last call: "float [1, 3, 224, 224]"
  int64_t calls = 0;
  double seconds = 0;           // without those of the steps in its bodies, which have totals of their own
  double share = 0;             // of the seconds of all steps, 0 to 1
  double device_seconds = 0;    // that a device takes for it alone, where that was measured
  double flops = 0, bytes = 0;  // estimates; those of nodes whose bodies ran are left out
};

struct ProfileSummary {
  int64_t runs = 0;
  double seconds = 0, step_seconds = 0;         // of all the runs, and of the steps in them
  std::vector<ProfileTotals> operators, nodes;  // slowest first
};

ProfileSummary summarize(std::span<const ProfiledRun> runs);

// The runs as a document of trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing show: a bar for each
// run and, on it, one for each step, with node, kernel, shapes and rates; steps that ran side by side are in rows
// below. `model` is what the process is called.
std::string trace_json(std::span<const ProfiledRun> runs, const std::string& model);

// The same in a file. Throws ErrorCode::write_failed.
void write_trace(const std::filesystem::path& path, std::span<const ProfiledRun> runs, const std::string& model);

}  // namespace tenon::tools
