// Models that are ready to run, in a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tenon/session.h"

namespace tenon {

struct CompiledModelInfo {
  int64_t bytes = 0;         // of the file
  int64_t graph_bytes = 0;   // of it: the optimised graph,
  int64_t tensor_bytes = 0;  // tensors that kernels read as they are,
  int64_t packed_bytes = 0;  // and weights as kernels want them
  int64_t nodes = 0, tensors = 0, packed = 0;
  std::string version, processor;  // that it is for
  // Options that are not as by default, by name.
  std::vector<std::pair<std::string, std::string>> options;
  std::filesystem::path model;  // that it was compiled from
};

// Writes the model as a session with these options has it: the graph after all passes, with weights packed for this
// processor. Session::load maps such a file and does none of that again; processes that load it share its pages. What
// is no part of the model, such as threads, is each session's own.
//
// The file is of use to the same version of Tenon on processors with the same features. What it was made from is in it:
// a session says when it is stale or damaged, and loads the model instead if that is there.
//
// Throws ErrorCode::unsupported if the options have custom operators or tensors in place of initializers.
CompiledModelInfo compile(const std::filesystem::path& model, const std::filesystem::path& output,
                          const SessionOptions& options = {});

// Reads a compiled file in full and compares all checksums, which loading does for graph and description only. Throws
// ErrorCode::damaged_file, or stale_file if it is not for this version, this processor or the model as it is now.
CompiledModelInfo check_compiled(const std::filesystem::path& path);

// Whether the file is a compiled model, by its first bytes.
bool is_compiled(const std::filesystem::path& path);

}  // namespace tenon
