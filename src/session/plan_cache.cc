#include "session/plan_cache.h"

#include <algorithm>
#include <cstring>

namespace tenon {
namespace {

uint64_t hash_of(const PlanKey& key) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int64_t word : key) {
    hash ^= static_cast<uint64_t>(word);
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

void add_content(PlanKey& key, const Tensor& tensor) {
  const auto bytes = static_cast<size_t>(tensor.bytes());
  for (size_t at = 0; at < bytes; at += sizeof(int64_t)) {
    int64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(tensor.raw()) + at, std::min(sizeof word, bytes - at));
    key.push_back(word);
  }
}

// `content_read`: arguments whose content belongs to it.
PlanKey key_of(std::span<const Value* const> arguments, const std::vector<bool>& content_read,
               const std::vector<bool>& wanted_outputs) {
  PlanKey key;
  int64_t word = 1;
  for (bool wanted : wanted_outputs) {
    word = word << 1 | int64_t{wanted};
    if (word >> 62 == 0) continue;
    key.push_back(word);
    word = 1;
  }
  key.push_back(word);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i] || !arguments[i]->is_tensor()) {
      key.push_back(arguments[i] ? -2 : -1);
      continue;
    }
    const Tensor& tensor = arguments[i]->tensor();
    const bool with_content = i < content_read.size() && content_read[i] && tensor.elements() <= most_content &&
                              tensor.type() != ElementType::string;
    key.push_back(static_cast<int64_t>(tensor.type()) << 8 | tensor.rank() << 1 | int64_t{with_content});
    for (int64_t dim : tensor.shape()) key.push_back(dim);
    if (with_content) add_content(key, tensor);
  }
  return key;
}

}  // namespace

std::shared_ptr<const Plan> PlanCache::find_or_make(const Program& program, const RunState& state,
                                                    std::span<const Value* const> arguments,
                                                    const std::vector<bool>& wanted_outputs) {
  PlanKey key;
  {
    std::lock_guard lock(mutex_);
    key = key_of(arguments, content_read_, wanted_outputs);
    if (auto plan = find(key, hash_of(key))) return plan;
    ++news_;
  }
  std::shared_ptr<const Plan> plan;
  {
    std::lock_guard lock(resolver_mutex_);
    make_last(program, state, arguments, wanted_outputs, key);
    plan = last_;
  }
  std::lock_guard lock(mutex_);
  content_read_.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!plan->content_read[i] || content_read_[i]) continue;
    // Plans made before did not know that they depend on this content.
    content_read_[i] = true;
    entries_.clear();
    by_hash_.clear();
  }
  key = key_of(arguments, content_read_, wanted_outputs);
  const uint64_t hash = hash_of(key);
  if (auto other = find(key, hash)) return other;
  add(std::move(key), hash, plan);
  return plan;
}

std::shared_ptr<const Plan> PlanCache::find(const PlanKey& key, uint64_t hash) {
  auto [first, last] = by_hash_.equal_range(hash);
  for (auto found = first; found != last; ++found) {
    if (!(found->second->key == key)) continue;
    if (found->second != entries_.begin()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      news_ = 0;
    }
    return found->second->plan;
  }
  return nullptr;
}

void PlanCache::add(PlanKey key, uint64_t hash, std::shared_ptr<const Plan> plan) {
  if (entries_.size() >= most_plans) remove(std::prev(entries_.end()));
  entries_.push_front({std::move(key), hash, std::move(plan)});
  by_hash_.emplace(hash, entries_.begin());
}

void PlanCache::remove(std::list<Entry>::iterator entry) {
  auto [first, last] = by_hash_.equal_range(entry->hash);
  by_hash_.erase(std::find_if(first, last, [&](const auto& item) { return item.second == entry; }));
  entries_.erase(entry);
}

// The last plan while it may change, because nobody else has it; and the frame that is bound to it, which waits on.
struct PlanCache::Claim {
  PlanCache& plans;
  Entry entry;
  std::unique_ptr<Frame> frame;
  bool has_changed = false;

  void change(PlanChange& by) {
    has_changed = true;
    exchange(*plans.last_, by);
    frame->take(by);
  }
  ~Claim() {
    std::lock_guard lock(plans.mutex_);
    plans.frames_.push_back(std::move(frame));
    if (!has_changed) plans.add(std::move(entry.key), entry.hash, std::move(entry.plan));
  }
};

// Shapes that are new every time, as those of a growing cache, are not likely to come back: then the last plan is made
// into the next one, which takes far less time than making one, unless a run uses it.
std::unique_ptr<PlanCache::Claim> PlanCache::claim_last() {
  constexpr int most_times_new = 2;
  std::lock_guard lock(mutex_);
  if (!last_ || news_ <= most_times_new || entries_.empty() || entries_.front().plan != last_) return nullptr;
  auto found = std::ranges::find_if(frames_, [&](const auto& waiting) { return waiting->plan() == last_; });
  // It, this and the entry are all that may have the plan.
  if (found == frames_.end() || last_.use_count() != 3) return nullptr;
  auto claim = std::make_unique<Claim>(*this, entries_.front(), std::move(*found));
  frames_.erase(found);
  remove(entries_.begin());
  return claim;
}

// Makes the last plan one for these arguments.
void PlanCache::make_last(const Program& program, const RunState& state, std::span<const Value* const> arguments,
                          const std::vector<bool>& wanted_outputs, const PlanKey& key) {
  const std::unique_ptr<Claim> claim = claim_last();
  if (claim && !foreseen_.empty() && foreseen_.front().key == key) {
    claim->change(foreseen_.front().change);
    foreseen_.pop_front();
    if (foreseen_.empty()) growth_.note_true();
    return;
  }
  if (!foreseen_.empty()) growth_.note_false();
  if (last_) growth_.note(*last_, arguments);
  // From now on what the resolver knows is what the last plan is for.
  if (claim) {
    for (Foreseen& next : foreseen_) claim->change(next.change);
  }
  foreseen_.clear();

  if (!resolver_) resolver_ = std::make_unique<ShapeResolver>(program);
  resolver_->resolve(state, arguments, wanted_outputs);
  if (!claim || !update_last(program, *claim))
    last_ = make_plan(program, *resolver_, wanted_outputs, state.branch_threads);
  else if (growth_.is_steady())
    foresee(program, state, arguments, wanted_outputs);
}

bool PlanCache::update_last(const Program& program, Claim& claim) {
  if (resolver_->visited_steps().size() > program.steps().size() / 2) return false;
  const std::optional<PlanChange> way_back = update_plan(*last_, program, *resolver_);
  if (!way_back) return false;
  claim.has_changed = true;
  claim.frame->take(*way_back);
  return true;
}

// Works out the plans of the next runs, if shapes go on to change as they did. This takes the time to get code and data
// into the processor's caches, after a run, rather than to compute: for several plans it is little more than for one.
void PlanCache::foresee(const Program& program, const RunState& state, std::span<const Value* const> arguments,
                        const std::vector<bool>& wanted_outputs) {
  if (std::ranges::find(last_->content_read, true) != last_->content_read.end()) return;
  std::vector<Value> now, next;
  for (const Value* argument : arguments) now.push_back(argument ? *argument : Value());
  auto resolve_for = [&](const std::vector<Value>& values) {
    SmallVector<const Value*, 8> pointers;
    for (const Value& value : values) pointers.push_back(value.defined() ? &value : nullptr);
    const std::span<const Value* const> all{pointers.data(), pointers.size()};
    resolver_->resolve(state, all, wanted_outputs);
    return key_of(all, /*content_read=*/{}, wanted_outputs);
  };
  try {
    for (int i = 0; i < growth_.foresight() && growth_.find_next(now, next); ++i) {
      PlanKey key = resolve_for(next);
      std::optional<PlanChange> way_back = update_plan(*last_, program, *resolver_);
      if (!way_back) {
        resolve_for(now);
        break;
      }
      foreseen_.push_back({std::move(key), std::move(*way_back)});
      std::swap(now, next);
    }
    // Some content that is there already may have been read for the first time.
    if (resolver_->content_read() != last_->content_read) resolver_.reset();
  } catch (const Error&) {
    // The run that brings such shapes will tell what is wrong with them.
    resolver_.reset();
    growth_.give_up();
  }
  for (auto next_plan = foreseen_.rbegin(); next_plan != foreseen_.rend(); ++next_plan)
    exchange(*last_, next_plan->change);
}

std::unique_ptr<Frame> PlanCache::take_frame(const std::shared_ptr<const Plan>& plan) {
  std::lock_guard lock(mutex_);
  if (frames_.empty()) return nullptr;
  auto found = std::ranges::find_if(frames_, [&](const auto& frame) { return frame->plan() == plan; });
  if (found == frames_.end()) found = std::prev(frames_.end());
  std::unique_ptr<Frame> frame = std::move(*found);
  frames_.erase(found);
  return frame;
}

void PlanCache::give_back(std::unique_ptr<Frame> frame) {
  frame->clear();
  std::lock_guard lock(mutex_);
  if (frames_.size() < most_frames) frames_.push_back(std::move(frame));
}

void PlanCache::drop_frames() {
  std::lock_guard lock(mutex_);
  frames_.clear();
}

void PlanCache::trim() {
  {
    std::lock_guard lock(resolver_mutex_);
    resolver_.reset();
    last_.reset();
    foreseen_.clear();
  }
  std::lock_guard lock(mutex_);
  frames_.clear();
  entries_.clear();
  by_hash_.clear();
}

}  // namespace tenon
