#pragma once

#include <optional>

namespace tenon {

// The number in an environment variable; nullopt where it is not set. Throws ErrorCode::invalid_argument for anything
// else than a number of at least `least`.
std::optional<int> number_in_environment(const char* name, int least);

// Whether a device's work is waited for after every node, as CUDA_LAUNCH_BLOCKING=1 asks: what fails is then known by
// name, and everything is slower.
bool waits_after_every_node();

}  // namespace tenon
