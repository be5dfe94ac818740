#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

// Decides where blocks of memory lie that are in use one after the other, so that they need little room together.
class ArenaLayout {
 public:
  static constexpr int64_t alignment = 64;

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

}  // namespace tenon
