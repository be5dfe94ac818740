#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::tools {

struct FinishedProcess {
  int code = 0;            // exit code; 128 and the signal's number if one ended it
  std::string out, error;  // what it wrote
};

// Runs a program, which is looked for along PATH, with these arguments until it ends; `input` is what it can read.
// Throws ErrorCode::missing_file if there is no such program.
FinishedProcess run_program(const std::vector<std::string>& command, std::string_view input = {});

}  // namespace tenon::tools
