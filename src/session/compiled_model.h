#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "session/compiled_file.h"
#include "session/device_copies.h"
#include "session/model_report.h"
#include "session/placement.h"
#include "session/program.h"

namespace tenon {

// A model ready to run: lifted, optimised, placed and compiled. It follows from the model and the options alone, and
// runs do not change it, so that sessions can share it.
class CompiledModel : public ModelReport {
 public:
  // Throws if any part of the model cannot run. `threads` are used now only. `packing`, if not null, notes what kernels
  // make of constants, with names of values that are unique.
  CompiledModel(std::unique_ptr<ir::Model> loaded, const SessionOptions& options, ThreadPool& threads,
                RecordedPacking* packing = nullptr);
  // As it was when the file was written. Throws ErrorCode::damaged_file if the file's parts do not fit each other; its
  // key was checked.
  CompiledModel(CompiledFile file, const SessionOptions& options, ThreadPool& threads);

  const ir::Model& model() const { return *model_; }
  const ir::Graph& graph() const { return *model_->graph; }
  const Program& program() const { return *program_; }
  // Of initializers, in memory or mapped from the file, and of what kernels made of them.
  int64_t weight_bytes() const;
  const PlacementReport& placement() const;
  PlacementReport placement_for(const std::map<std::string, Shape>& input_shapes) const;

 private:
  void start_providers(const SessionOptions& options);
  void describe_interface();
  void optimize(const SessionOptions& options, OptimizationLevel level, ThreadPool& threads);
  bool runs(const ir::Node& node) const;
  // Whether a provider before the last one can have what the node is made of.
  bool is_for_device(const ir::Node& node) const;
  void note(const std::vector<std::string>& lines);
  void compile(ThreadPool& threads, MemoryUse memory, const PrecisionChoice& precision, PackedArchive* packing);

  std::vector<std::unique_ptr<Provider>> providers_;
  std::vector<const Provider*> order_;                                  // the same
  std::vector<const Provider*> hosts_;                                  // those in the host's memory
  const Provider* support_ = nullptr;                                   // the CPU, where it was not asked for
  std::unique_ptr<DevicePlacement> devices_;                            // null: all is on the host
  std::vector<std::pair<std::string, std::string>> missing_providers_;  // name and reason
  std::unique_ptr<ir::Model> model_;
  Placement placement_;
  std::unique_ptr<Program> program_;
  mutable std::once_flag report_once_;
  mutable PlacementReport report_;
};

}  // namespace tenon
