#pragma once

#include <vector>

#include "provider/kernel.h"

namespace tenon::ops {

// Collects what a body gives out in each iteration and joins it along a new axis.
class ScanOutput {
 public:
  // `position` is the output's number in the node, for errors.
  explicit ScanOutput(size_t position) : position_(position) {}

  // Throws unless all have one type and shape, and when the list of them exceeds the run's memory.
  void add(const KernelRun& run, const Value& value);
  // The items along `axis` (counted from the end when negative), last one first when `reversed`. Without items,
  // `declared` gives type and shape; sizes it does not know are 0.
  Tensor join(KernelRun& run, int64_t axis, bool reversed, const ir::Type& declared) const;

 private:
  size_t position_;
  std::vector<Tensor> items_;
  std::shared_ptr<void> reserved_;  // counts the list itself as memory of the run
};

// Item `index` along `axis`, a view where it is one range of memory.
Tensor slice_at(KernelRun& run, const Tensor& tensor, int axis, int64_t index);

}  // namespace tenon::ops
