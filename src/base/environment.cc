#include "base/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/fail.h"

namespace tenon {

std::optional<int> number_in_environment(const char* name, int least) {
  const char* set = std::getenv(name);
  if (!set) return std::nullopt;
  const std::string_view text = set;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the environment variable {} is '{}', not a number of at least {}", name, text, least),
                fmt::format("unset it, or set it to a number: {}={}", name, least));
  }
  return number;
}

bool waits_after_every_node() {
  static const bool waits = [] {
    const char* set = std::getenv("CUDA_LAUNCH_BLOCKING");
    return set && *set && std::string_view(set) != "0";
  }();
  return waits;
}

}  // namespace tenon
