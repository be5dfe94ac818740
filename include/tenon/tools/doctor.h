#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tenon/tools/measure_machine.h"

namespace tenon::tools {

// What a maintainer would ask for in a bug report, as sections of names and values.
struct DoctorReport {
  struct Section {
    std::string title;
    std::vector<std::pair<std::string, std::string>> lines;
  };
  std::vector<Section> sections;
  std::vector<std::string> warnings;  // each with what to do about it
  std::optional<MachineSpeed> speed;  // what the section "Self-test" says, as numbers
};

struct DoctorOptions {
  bool measure = true;  // runs measure_machine
};

DoctorReport examine_machine(const DoctorOptions& options = {});

}  // namespace tenon::tools
