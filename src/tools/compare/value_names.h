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

  // The name, if rewrites gave it another one, of what the model calls so; else that name itself.
  const std::string& now(const std::string& name) const;
  // What the model calls values that now have this name; the name itself is not among them.
  std::vector<std::string> before(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::string> now_;
  std::unordered_map<std::string, std::vector<std::string>> before_;
};

}  // namespace tenon::tools
