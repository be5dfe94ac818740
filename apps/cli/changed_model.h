// What the commands that make one model of another share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "output_flags.h"
#include "tenon/tools/changed_model.h"

namespace tenon::cli {

// The model to read, and the file to write.
struct ModelFlags {
  std::string model;
  OutputFlags output;
  bool json = false;
  void add_to(CLI::App& command);
};

// Throws where there is no file to write, before any work is done.
tools::OnnxModel load_model(const ModelFlags& flags);
// Writes the model and says what was done. `more` is added to the JSON document.
int write_changed(const tools::ChangedModel& changed, const ModelFlags& flags);
int write_changed(const tools::ChangedModel& changed, const ModelFlags& flags, const nlohmann::json& more);

// Each "OLD=NEW" as a pair; `option` is what an error calls them.
std::vector<std::pair<std::string, std::string>> pairs(const std::vector<std::string>& texts, const char* option);
int64_t parse_size(const std::string& text);
// "1x3x224x224"
Shape parse_shape(const std::string& text);

}  // namespace tenon::cli
