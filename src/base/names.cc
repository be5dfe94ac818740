#include "base/names.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace tenon {
namespace {

// Edit distance in halves: a change of case costs 1, any other edit 2. Stops counting above `limit`.
int edit_distance(std::string_view a, std::string_view b, int limit) {
  std::vector<int> previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = 2 * static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = 2 * static_cast<int>(i);
    int best = current[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      int change = 2;
      if (a[i - 1] == b[j - 1]) {
        change = 0;
      } else if (std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                 std::tolower(static_cast<unsigned char>(b[j - 1]))) {
        change = 1;
      }
      current[j] = std::min({previous[j] + 2, current[j - 1] + 2, previous[j - 1] + change});
      best = std::min(best, current[j]);
    }
    if (best > limit) return limit + 1;
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.empty() || name.size() > 200) return {};
  int best = static_cast<int>(std::max<size_t>(2, 2 * name.size() / 3));
  std::string_view nearest;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > 200) continue;
    int distance = edit_distance(name, candidate, best);
    if (distance < best || (distance == best && nearest.empty())) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string quoted_list(std::span<const std::string_view> names, size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) {
    if (i) text += ", ";
    text += "'" + std::string(names[i]) + "'";
  }
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

}  // namespace tenon
