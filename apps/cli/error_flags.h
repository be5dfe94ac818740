// How much two results may differ, as options of commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tenon/tools/error_statistics.h"

namespace tenon::cli {

// --rtol, --atol, --measure, --quantile and --tolerance PATTERN=RTOL[,ATOL].
struct ErrorFlags {
  tools::Tolerance tolerance{1e-3, 1e-6};
  std::string measure = "max";
  double quantile = 0.99;
  std::vector<std::string> patterns;

  void add_to(CLI::App& command);
  tools::ErrorLimit limit() const;
  std::vector<std::pair<std::string, tools::Tolerance>> tolerances() const;
  // "max error at most 0.001 of the largest number, or 1e-06"
  std::string text() const;
};

}  // namespace tenon::cli
