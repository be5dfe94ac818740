#pragma once

#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "session/frame.h"
#include "session/growth.h"

namespace tenon {

// The plans of a program, the least recently used of which are forgotten, and frames that wait for their next run.
class PlanCache {
 public:
  // The plan for these arguments, made if there is none.
  std::shared_ptr<const Plan> find_or_make(const Program& program, const RunState& state,
                                           std::span<const Value* const> arguments,
                                           const std::vector<bool>& wanted_outputs);

  // A frame, bound to `plan` if one is; null if none waits.
  std::unique_ptr<Frame> take_frame(const std::shared_ptr<const Plan>& plan);
  void give_back(std::unique_ptr<Frame> frame);
  void trim();
  void drop_frames();

 private:
  struct Entry {
    PlanKey key;
    uint64_t hash;
    std::shared_ptr<const Plan> plan;
  };
  static constexpr size_t most_plans = 32, most_frames = 64;

  void add(PlanKey key, uint64_t hash, std::shared_ptr<const Plan> plan);
  void remove(std::list<Entry>::iterator entry);
  std::shared_ptr<const Plan> find(const PlanKey& key, uint64_t hash);
  struct Claim;
  void make_last(const Program& program, const RunState& state, std::span<const Value* const> arguments,
                 const std::vector<bool>& wanted_outputs, const PlanKey& key);
  std::unique_ptr<Claim> claim_last();
  bool update_last(const Program& program, Claim& claim);
  void foresee(const Program& program, const RunState& state, std::span<const Value* const> arguments,
               const std::vector<bool>& wanted_outputs);

  // What makes the last plan that of a later run.
  struct Foreseen {
    PlanKey key;
    PlanChange change;
  };

  std::mutex resolver_mutex_;  // guards what follows
  std::unique_ptr<ShapeResolver> resolver_;
  std::shared_ptr<Plan> last_;
  Growth growth_;
  std::deque<Foreseen> foreseen_;  // one after the other; the resolver knows what the last of them is for
  std::mutex mutex_;               // guards what follows
  std::list<Entry> entries_;       // the most recently used first
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> by_hash_;
  std::vector<bool> content_read_;  // arguments whose content belongs to the key
  std::vector<std::unique_ptr<Frame>> frames_;
  int news_ = 0;  // plans that were looked for in vain since an earlier one than the last was found
};

// Those of a program and of its subgraphs.
class PlanCaches {
 public:
  explicit PlanCaches(const Program& program) : caches_(static_cast<size_t>(program.program_count())) {}
  PlanCache& of(const Program& program) { return at(caches_, program.index()); }
  // Plans and frames that no run uses now are given up.
  void trim() {
    for (PlanCache& cache : caches_) cache.trim();
  }
  // The same with frames alone.
  void drop_frames() {
    for (PlanCache& cache : caches_) cache.drop_frames();
  }

 private:
  std::deque<PlanCache> caches_;
};

}  // namespace tenon
