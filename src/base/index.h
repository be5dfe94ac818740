#pragma once

#include <cstddef>

namespace tenon {

// list[index] for an index that is not negative.
template <typename List>
decltype(auto) at(List&& list, int index) {
  return list[static_cast<size_t>(index)];
}

}  // namespace tenon
