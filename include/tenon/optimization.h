#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

// How much a model is rewritten before it runs. Each level does what the ones before it do, but for `exact`, which is
// every rewrite of any level that cannot change a bit of the results.
enum class OptimizationLevel : unsigned char { none, exact, basic, extended, all };

std::string_view name_of(OptimizationLevel level);
// The level of this name. Throws ErrorCode::invalid_argument, with the nearest name as a hint.
OptimizationLevel optimization_level(std::string_view name);

// A pass of the optimiser.
struct OptimizationPass {
  std::string_view name;
  OptimizationLevel level;  // the first that runs it
  bool exact;               // whether results stay the same to the last bit
  std::string_view does;
};

// Every pass, in the order in which they run.
std::vector<OptimizationPass> optimization_passes();

// One change that a pass made to the model.
struct Rewrite {
  std::string pass;
  std::vector<std::string> before;  // nodes that are gone: "Conv 'stem' (node 3)"
  std::vector<std::string> after;   // operators that took their place: "Conv 'stem'"
  // Values that went by the first name and now have the second.
  std::vector<std::pair<std::string, std::string>> renamed;
  // Images that nodes now hand on in blocks of channels, as [N, channels / block rounded up, H, W, block], or with
  // their channels last, as [N, H, W, channels]: `to` what was `from`.
  struct BlockedImage {
    std::string from, to;
    int64_t channels;
    bool operator==(const BlockedImage&) const = default;
  };
  std::vector<BlockedImage> blocked;
};

}  // namespace tenon
