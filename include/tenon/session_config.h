// Options of a session by name, for programs that keep them as text.
#pragma once

#include <string_view>
#include <vector>

#include "tenon/session.h"

namespace tenon {

// Sets the option that `key` means. Where onnxruntime has a key for it, it is that one:
//
//   optimization.disable_specified_optimizers   names of passes, separated by ';' or ','
//   session.intra_op.allow_spinning             0 or 1
//   session.intra_op.spin_duration_us           a number
//   session.set_denormal_as_zero                0 or 1
//   session.disable_cpu_ep_fallback             0: SessionOptions::allow_fallback. 1: a node that no other provider
//   than
//                                               "cpu" runs is an error, which names it and says why; "cpu" is taken
//                                               out of SessionOptions::providers, which are to be set before
//
// and of Tenon's own:
//
//   tenon.level                                 none, exact, basic, extended or all
//   tenon.threads                               a number; 0: the threads that all sessions share
//   tenon.parallel_branches                     0 or 1; onnxruntime's execution mode, which is no key there
//   tenon.memory                                normal or low
//   tenon.memory_limit                          bytes
//   tenon.decompose, tenon.keep                 names, separated by ';' or ','
//   tenon.trust_size_names                      0 or 1
//
// Throws ErrorCode::invalid_argument for another key, with the nearest of these, or for a value that does not fit.
void set_config(SessionOptions& options, std::string_view key, std::string_view value);

// Every key that set_config takes.
std::vector<std::string_view> config_keys();

}  // namespace tenon
