#include "tools/patterns.h"

namespace tenon::tools {

bool fits_pattern(std::string_view name, std::string_view pattern) {
  // Where to go on if what follows the last star does not fit: the star takes one character more.
  size_t star = std::string_view::npos, taken = 0, n = 0, p = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace tenon::tools
