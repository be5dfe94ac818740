#pragma once

#include <fmt/core.h>

#include "tenon/error.h"

namespace tenon {

// Throws an Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

// For conditions that only a bug in Tenon can break.
#define TENON_CHECK(condition) \
  ((condition) ? void(0)       \
               : ::tenon::fail(::tenon::ErrorCode::internal, "{} is false ({}:{})", #condition, __FILE__, __LINE__))

}  // namespace tenon
