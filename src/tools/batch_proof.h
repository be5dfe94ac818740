#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/tools/dynamic.h"
#include "tools/batch_rules.h"

namespace tenon::tools {

// The rows of a tensor: `count` of them from `first` on along an axis, each of `length` elements there.
Tensor rows_of(const Tensor& tensor, size_t axis, int64_t first, int64_t count, int64_t length = 1);

struct BatchProof {
  std::vector<int64_t> sizes;  // that were run
  double largest_difference = 0;
  std::vector<std::string> notes;
  std::vector<DynamicBlocker> failures;
};

// Which axis of each value has the rows.
using RowAxes = std::map<std::string, size_t>;

// Runs `freed` with 1, 2 and 3 rows, and each row alone (as often as the old size says) through `original`.
// `inputs` and `values` say where the rows are in inputs, and in what nodes make.
BatchProof prove_rows(const OnnxModel& original, const OnnxModel& freed, const RowAxes& inputs, const RowAxes& values,
                      int64_t old_size, const DynamicOptions& options);

}  // namespace tenon::tools
