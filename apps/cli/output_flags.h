// What the commands that write a model share.
#pragma once

#include "cli.h"
#include "tenon/tools/compare_runs.h"
#include "tenon/tools/onnx_model.h"

namespace tenon::cli {

// -o OUT, --force, and where tensors go.
struct OutputFlags {
  std::string path, external_data;
  int64_t external_from = 1024;
  bool force = false;
  void add_to(CLI::App& command);
  // Throws ErrorCode::invalid_argument if there is no OUT, before any work is done.
  void require() const;
  tools::SavedModel save(const tools::OnnxModel& model) const;
};

// "wrote out.onnx and out.onnx.data", and the notes.
void print(const tools::SavedModel& saved);
nlohmann::json to_json(const tools::SavedModel& saved);

// Whether the model that was made computes what the first one does: "verified: …" or why not.
void print(const tools::RunComparison& comparison);
nlohmann::json to_json(const tools::RunComparison& comparison);

}  // namespace tenon::cli
