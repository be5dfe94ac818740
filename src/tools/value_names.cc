#include "tools/value_names.h"

#include <utility>

namespace tenon::tools {
namespace {

template <typename Value>
Value value_or(const std::unordered_map<std::string, Value>& map, const std::string& name, Value other) {
  const auto found = map.find(name);
  if (found == map.end()) return other;
  return found->second;
}

}  // namespace

ValueNames::ValueNames(std::span<const Rewrite> rewrites) {
  for (const Rewrite& rewrite : rewrites) {
    for (const Rewrite::BlockedImage& image : rewrite.blocked) {
      std::vector<std::string>& there = before_[image.to];
      for (const std::string& name : before(image.from)) there.push_back(name);
      there.push_back(image.from);
      for (const std::string& name : there) blocked_[name] = image.to;
      channels_[image.to] = image.channels;
    }
    for (const auto& [from, to] : rewrite.renamed) {
      const int64_t channels = channels_in_blocks(from);
      if (channels > 0) channels_[to] = channels;
      std::vector<std::string> moved = std::exchange(before_[from], {});
      moved.push_back(from);
      for (const std::string& name : moved) (channels > 0 ? blocked_ : now_)[name] = to;
      std::vector<std::string>& there = before_[to];
      there.insert(there.end(), std::move_iterator(moved.begin()), std::move_iterator(moved.end()));
    }
  }
}

std::vector<std::string> ValueNames::now(const std::string& name) const {
  std::vector<std::string> names = {value_or(now_, name, name)};
  if (const auto blocked = blocked_.find(name); blocked != blocked_.end()) names.push_back(blocked->second);
  return names;
}

std::vector<std::string> ValueNames::before(const std::string& name) const {
  return value_or(before_, name, std::vector<std::string>());
}

int64_t ValueNames::channels_in_blocks(const std::string& name) const { return value_or(channels_, name, int64_t{0}); }

}  // namespace tenon::tools
