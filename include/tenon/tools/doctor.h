#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tenon::tools {

// What a maintainer would ask for in a bug report, as sections of names and values.
struct DoctorReport {
  struct Section {
    std::string title;
    std::vector<std::pair<std::string, std::string>> lines;
  };
  std::vector<Section> sections;
  std::vector<std::string> warnings;  // each with what to do about it
};

DoctorReport examine_machine();

}  // namespace tenon::tools
