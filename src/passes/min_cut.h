// The cheapest way to divide things in two when keeping some apart has a price.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tenon::passes {

class MinCut {
 public:
  static constexpr int64_t forbidden = std::numeric_limits<int64_t>::max() / 4;
  // On the first side and on the second, always.
  static constexpr int first = 0, second = 1;

  // A thing that may be on either side; numbers count up from 2.
  int add();
  // What it costs when `a` is on the first side and `b` on the second: 0 or more; prices of the same two add up.
  void price(int a, int b, int64_t cost);
  // For each thing whether it is on the first side; of several cheapest divisions, the one with fewest there.
  std::vector<bool> solve();

 private:
  struct Edge {
    int to;
    int64_t room;
  };
  bool measure_distances();
  int64_t push(int from, int64_t most);

  std::vector<Edge> edges_;  // edge i and its reverse i ^ 1
  std::vector<std::vector<int>> leaving_ = {{}, {}};
  std::vector<int> distance_;
  std::vector<size_t> next_;
};

}  // namespace tenon::passes
