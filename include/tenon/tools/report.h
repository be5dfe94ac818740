#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/make_inputs.h"

namespace tenon::tools {

struct ReportOptions {
  SessionOptions session;
  InputSources inputs;
  NamedValues values;  // if there are any, these are the inputs
  // Without runs: structure, shapes, placement, memory plan and rewrites; no times.
  bool run = true;
  int64_t runs = 10, warmup = 3;
  // Measure what the machine can do at most, for the roofline; takes some tenths of a second.
  bool measure_peaks = true;
  // What `tenon compare --json` printed, "" for nothing: errors by tensor, to colour the graph with.
  std::string errors;
  // Lay the graph out without Graphviz even where it is installed.
  bool own_layout = false;
  // Is told what is being done, and which of how many steps that is.
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

struct Report {
  std::string json;                // all that the page shows, as one document
  std::vector<std::string> notes;  // what was left out or assumed, and why; they are on the page too
};

// All about the model in the file as these options run it. Throws what loading and running throw.
Report make_report(const std::filesystem::path& path, const ReportOptions& options = {});

// The report as one HTML page that needs nothing else, and asks the network for nothing.
std::string report_page(const Report& report);

// The page in a file. Throws ErrorCode::write_failed.
void write_report(const std::filesystem::path& path, const Report& report);

}  // namespace tenon::tools
