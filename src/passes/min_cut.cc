#include "passes/min_cut.h"

#include <algorithm>

namespace tenon::passes {

int MinCut::add() {
  leaving_.emplace_back();
  return static_cast<int>(leaving_.size()) - 1;
}

void MinCut::price(int a, int b, int64_t cost) {
  if (cost <= 0 || a == b) return;
  leaving_[static_cast<size_t>(a)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({b, std::min(cost, forbidden)});
  leaving_[static_cast<size_t>(b)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({a, 0});
}

// Steps from the first side along edges with room; whether the second can be reached.
bool MinCut::measure_distances() {
  distance_.assign(leaving_.size(), -1);
  distance_[first] = 0;
  std::vector<int> queue = {first};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int e : leaving_[static_cast<size_t>(queue[i])]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      int& distance = distance_[static_cast<size_t>(edge.to)];
      if (edge.room <= 0 || distance >= 0) continue;
      distance = distance_[static_cast<size_t>(queue[i])] + 1;
      queue.push_back(edge.to);
    }
  }
  return distance_[second] >= 0;
}

// A path of shortest distance, found without recursion: graphs may be deep.
int64_t MinCut::push(int from, int64_t most) {
  std::vector<int> path;
  int at = from;
  while (at != second) {
    auto& leaving = leaving_[static_cast<size_t>(at)];
    size_t& next = next_[static_cast<size_t>(at)];
    for (; next < leaving.size(); ++next) {
      const Edge& edge = edges_[static_cast<size_t>(leaving[next])];
      if (edge.room > 0 && distance_[static_cast<size_t>(edge.to)] == distance_[static_cast<size_t>(at)] + 1) break;
    }
    if (next < leaving.size()) {
      path.push_back(leaving[next]);
      at = edges_[static_cast<size_t>(leaving[next])].to;
    } else {
      if (path.empty()) return 0;
      at = edges_[static_cast<size_t>(path.back() ^ 1)].to;
      path.pop_back();
      ++next_[static_cast<size_t>(at)];
    }
  }
  for (int e : path) most = std::min(most, edges_[static_cast<size_t>(e)].room);
  for (int e : path) {
    edges_[static_cast<size_t>(e)].room -= most;
    edges_[static_cast<size_t>(e ^ 1)].room += most;
  }
  return most;
}

std::vector<bool> MinCut::solve() {
  while (measure_distances()) {
    next_.assign(leaving_.size(), 0);
    while (push(first, forbidden) > 0) continue;
  }
  std::vector<bool> result;
  for (int distance : distance_) result.push_back(distance >= 0);
  return result;
}

}  // namespace tenon::passes
