#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "session/plan.h"

namespace tenon {

// How the shapes of a program's arguments change from run to run.
class Growth {
 public:
  // Notes the arguments of a run, and those of the plan of the run before.
  void note(const Plan& before, std::span<const Value* const> arguments);
  // Whether the shapes changed the last time, as they had changed the time before.
  bool is_steady() const { return is_steady_; }
  // How many runs it is worth to look ahead: more and more, as long as what was foreseen comes true.
  int foresight() const { return foresight_; }
  void note_true() { foresight_ = std::min(2 * foresight_, most_foresight); }
  void note_false() { foresight_ = std::min(foresight_, 1); }
  void give_up() { foresight_ = 0; }

  // Sets `next` to the arguments after `now`, if they go on to change like that; without content, those that change.
  // Says whether there are such.
  bool find_next(const std::vector<Value>& now, std::vector<Value>& next) const;

 private:
  static constexpr int most_foresight = 16;

  std::vector<Shape> steps_;  // by argument and axis; empty where nothing changes
  bool is_steady_ = false;
  int foresight_ = 1;
};

}  // namespace tenon
