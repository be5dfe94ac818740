#pragma once

#include <array>
#include <span>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "tenon/shape.h"

namespace tenon::ops {

// A part of a broadcast loop: rows of output elements, one row after the other. Each input is read from element
// `first` on, with the given distance between rows; within a row its elements are adjacent (stride 1) or all one (0).
struct BroadcastTile {
  static constexpr int max_inputs = 3;

  int64_t rows, columns;
  int64_t output;  // the first element
  std::array<int64_t, max_inputs> first, row_stride, column_stride;
};

// The loop of an elementwise operator whose inputs are broadcast to the output's shape. Neighbouring axes that all
// inputs treat alike are walked as one.
class Broadcast {
 public:
  // At most BroadcastTile::max_inputs inputs, which can be broadcast to `output`.
  Broadcast(const Shape& output, std::span<const Shape* const> inputs);
  Broadcast(const Shape& output, std::initializer_list<const Shape*> inputs)
      : Broadcast(output, std::span(inputs.begin(), inputs.size())) {}

  using Body = FunctionRef<void(const BroadcastTile&)>;
  // The output elements [begin, end) in tiles.
  void tiles(int64_t begin, int64_t end, Body body) const;
  // All of them, split over threads.
  void run(ThreadPool& threads, int64_t grain, Body body) const;

 private:
  struct Axis {
    int64_t size;
    std::array<int64_t, BroadcastTile::max_inputs> strides;
  };
  const Axis* outer_begin() const { return axes_.begin() + 2; }

  int64_t elements_;
  SmallVector<Axis, 6> axes_;  // innermost first, at least two
};

}  // namespace tenon::ops
