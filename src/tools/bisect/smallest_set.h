#pragma once

#include <functional>
#include <vector>

namespace tenon::tools {

// The smallest part of a list for which `holds`, as far as leaving out one thing after the other finds it. The list has
// what is most likely needed first, and the whole of it holds. Takes as many calls as halving does where a longer
// beginning of the list holds if a shorter one does, and a few for each thing that is needed.
std::vector<size_t> smallest_set(size_t count, const std::function<bool(const std::vector<size_t>&)>& holds);

}  // namespace tenon::tools
