#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tenon/shape.h"
#include "tenon/tools/changed_model.h"

namespace tenon::tools {

struct StripOptions {
  int64_t from_bytes = 1024;  // smaller tensors stay in the model: shapes and the like are among them
  std::string weights_file;   // its name, beside the model; "": that of the model with ".weights" behind it
  bool overwrite = false;     // a file that the model was read from
};

struct StrippedTensor {
  std::string name, type;
  Shape shape;
  int64_t bytes = 0;
  std::string hash;  // of its content
};

struct StrippedModel {
  std::filesystem::path model, weights, manifest;
  std::vector<StrippedTensor> tensors;
  std::string hash;  // of all of them
};

// Writes a model without its weights, and these into a file of their own, as external data that may be taken away, with
// a list of what is in it (FILE.json). The model keeps names, types and shapes, and a hash by which `restore` knows
// whether weights are its own.
StrippedModel strip(const OnnxModel& model, const std::filesystem::path& path, const StripOptions& options = {});

// Puts the weights back. `weights` may be empty if they lie beside the model. Throws ErrorCode::damaged_file, naming
// the tensors, if they are not the ones that were taken out.
ChangedModel restore(const std::filesystem::path& stripped, const std::filesystem::path& weights = {});

}  // namespace tenon::tools
