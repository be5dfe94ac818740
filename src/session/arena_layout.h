#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

// Decides where blocks of memory lie that are in use one after the other, so that they need little room together.
class ArenaLayout {
 public:
  static constexpr int64_t alignment = 64;
  // What a block of `bytes` takes.
  static int64_t rounded(int64_t bytes);

  // The offset of `bytes` that nobody uses: of the gaps between other blocks, the smallest that is large enough.
  int64_t allocate(int64_t bytes);
  // `offset` and `bytes` of an earlier allocation.
  void release(int64_t offset, int64_t bytes);
  // What all allocations so far need.
  int64_t bytes() const { return end_; }

 private:
  struct Gap {
    int64_t offset, bytes;
  };
  std::vector<Gap> gaps_;  // by offset; never two adjacent ones
  int64_t end_ = 0;
};

// A block of memory with the steps that use it, first and last included.
struct ArenaBlock {
  int first_step, last_step;
  int64_t bytes;
  int64_t offset = 0;
};

// Gives the blocks offsets, the largest ones first, each in the smallest gap between those that are in use at the same
// time. Returns the bytes they need together. Takes longer than ArenaLayout, by the square of their number, and often
// finds a tighter layout, because it knows what comes.
int64_t lay_out_by_size(std::span<ArenaBlock> blocks);

}  // namespace tenon
