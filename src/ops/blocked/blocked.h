#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::ops {

// The largest stride of BlockedConvTranspose: each makes as many parts of a kernel.
inline constexpr int64_t most_transposed_stride = 8;

// With what names of BlockedConvMaxPool's attributes begin that are those of the MaxPool, whose windows are over
// height, width and the block.
inline constexpr std::string_view pool_prefix = "pool_";
inline constexpr int pool_axes = 3;

// Groups of a convolution as kernels of blocks of channels take them: where channels of one do not fill blocks, some
// are joined, with weights of zero from the channels of one to those of another.
struct BlockedGroups {
  int64_t joined;   // how many make one
  int64_t count;    // of those that are made
  int64_t in, out;  // channels of each; the last ones may be none
};
// For groups of so many channels. Nullopt where what is joined is not as long as all blocks are.
std::optional<BlockedGroups> blocked_groups(int64_t groups, int64_t in, int64_t out, int64_t block);

}  // namespace tenon::ops
