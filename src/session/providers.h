// The providers that a session can ask for, by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "provider/provider.h"

namespace tenon {

// Starts a provider. Throws ErrorCode::provider_unavailable that says what is missing, where it was looked for and what
// helps.
using StartProvider = std::function<std::unique_ptr<Provider>()>;

// Adds one beside "cpu"; for providers that are linked in, and for tests. Replaces one of the same name.
void register_provider(const std::string& name, StartProvider start);

std::vector<std::string> provider_names();
// "cpu" for "CPUExecutionProvider"; other names as they are.
std::string short_provider_name(const std::string& name);
// "CPUExecutionProvider" and its like mean the same as "cpu"; "cuda:1" is the second GPU. Throws
// ErrorCode::provider_unavailable for unknown names.
std::unique_ptr<Provider> start_provider(const std::string& name);

}  // namespace tenon
