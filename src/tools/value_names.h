#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/optimization.h"

namespace tenon::tools {

// What values are called after rewrites.
class ValueNames {
 public:
  explicit ValueNames(std::span<const Rewrite> rewrites = {});

  // Names of what the model calls so: the last one it was given, or that name itself; then that of the same image in
  // blocks of channels, if there is one.
  std::vector<std::string> now(const std::string& name) const;
  // What the model calls values that now have this name; the name itself is not among them.
  std::vector<std::string> before(const std::string& name) const;
  // How many channels the image that now has this name holds in blocks; 0 if it is none of that kind.
  int64_t channels_in_blocks(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::string> now_, blocked_;
  std::unordered_map<std::string, std::vector<std::string>> before_;
  std::unordered_map<std::string, int64_t> channels_;
};

}  // namespace tenon::tools
