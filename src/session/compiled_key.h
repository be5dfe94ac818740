// What a compiled file was made from and for. It is of use only where all of it is as it was.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// A file of a model: that of its graph, or of external data.
struct ModelFile {
  std::string name;  // relative to the folder of the first one
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  uint64_t hash = 0;  // of its content
};

struct CompiledKey {
  std::string version;    // of Tenon, and of its sources
  std::string processor;  // what decides on kernels and on the layout of weights
  ir::StringPairs
      options;  // of the session, by name: those that decide on the graph and are not as they are by default
  std::vector<std::string> providers;
  std::filesystem::path model;  // as it was found then
  std::vector<ModelFile> files;
};

// That it was compiled with.
Precision precision_of(const CompiledKey& key);

// Of this build and this processor, in words.
std::string compiled_version();
std::string compiled_processor();

// Throws ErrorCode::unsupported if the options hold what no file can: operators of the user's own or tensors.
CompiledKey make_key(const std::filesystem::path& model, const std::vector<FileIdentity>& files,
                     const SessionOptions& options);

// Throws ErrorCode::stale_file where this build, this processor or the session want something else than the file has.
// An option that is as by default asks for nothing. Returns what the file decides in its place, "" if nothing.
std::string check_key(const CompiledKey& key, const SessionOptions& options);

// The model that a compiled file was made from: beside the file, or where it was then.
std::optional<std::filesystem::path> find_model(const CompiledKey& key, const std::filesystem::path& compiled);
// Throws ErrorCode::stale_file if the model there has other contents now. Contents are read only where size or time of
// a file have changed.
void check_model(const CompiledKey& key, const std::filesystem::path& model);

}  // namespace tenon
