#include "tools/bisect/smallest_set.h"

#include <algorithm>
#include <numeric>

namespace tenon::tools {
namespace {

using Set = std::vector<size_t>;
using Holds = std::function<bool(const Set&)>;

Set first_of(const Set& set, size_t count) { return {set.begin(), set.begin() + static_cast<std::ptrdiff_t>(count)}; }

// The shortest beginning that holds.
Set shortest_beginning(const Set& all, const Holds& holds) {
  if (holds({})) return {};
  size_t too_few = 0, enough = all.size();
  while (enough - too_few > 1) {
    const size_t middle = too_few + (enough - too_few) / 2;
    (holds(first_of(all, middle)) ? enough : too_few) = middle;
  }
  return first_of(all, enough);
}

Set without(const Set& set, size_t first, size_t count) {
  Set rest = first_of(set, first);
  rest.insert(rest.end(), set.begin() + static_cast<std::ptrdiff_t>(first + count), set.end());
  return rest;
}

}  // namespace

std::vector<size_t> smallest_set(size_t count, const Holds& holds) {
  Set all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  Set set = shortest_beginning(all, holds);
  // Larger parts first, then single things; the last one of the beginning is known to be needed.
  for (size_t part = set.size() / 2; part > 0; part /= 2) {
    for (size_t first = 0; first + part < set.size();) {
      Set rest = without(set, first, part);
      if (holds(rest))
        set = std::move(rest);
      else
        first += part;
    }
  }
  return set;
}

}  // namespace tenon::tools
