#include "tools/compare/value_names.h"

#include <utility>

namespace tenon::tools {

ValueNames::ValueNames(std::span<const Rewrite> rewrites) {
  for (const Rewrite& rewrite : rewrites) {
    for (const auto& [from, to] : rewrite.renamed) {
      std::vector<std::string> moved = std::exchange(before_[from], {});
      moved.push_back(from);
      for (const std::string& name : moved) now_[name] = to;
      std::vector<std::string>& there = before_[to];
      there.insert(there.end(), std::move_iterator(moved.begin()), std::move_iterator(moved.end()));
    }
  }
}

const std::string& ValueNames::now(const std::string& name) const {
  const auto found = now_.find(name);
  return found == now_.end() ? name : found->second;
}

std::vector<std::string> ValueNames::before(const std::string& name) const {
  const auto found = before_.find(name);
  return found == before_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace tenon::tools
