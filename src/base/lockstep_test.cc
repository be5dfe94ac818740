#include "base/lockstep.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace tenon {
namespace {

// Each part of a step is the sum of all parts of the step before, plus one: wrong if a step began too early, twice or
// never.
std::vector<int64_t> sums(int64_t parts, int64_t steps, int threads) {
  std::vector<int64_t> states[2] = {std::vector<int64_t>(static_cast<size_t>(parts), 1),
                                    std::vector<int64_t>(static_cast<size_t>(parts))};
  Lockstep lockstep(parts, steps);
  const auto work = [&](int64_t step, int64_t part) {
    if (part == step % parts) std::this_thread::yield();  // threads are late by turns
    int64_t sum = 1;
    for (int64_t value : states[step % 2]) sum += value % 1000003;
    states[(step + 1) % 2][static_cast<size_t>(part)] += sum;
  };
  ThreadPool pool(threads);
  pool.parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t own = begin; own < end; ++own) lockstep.join(own, work);
  });
  return states[steps % 2];
}

TEST(Lockstep, StepsFollowEachOther) {
  for (int64_t parts : {1, 2, 3, 5}) {
    for (int64_t steps : {0, 1, 2, 1000}) {
      const std::vector<int64_t> expected = sums(parts, steps, 1);
      for (int threads : {2, 3, 5}) EXPECT_EQ(sums(parts, steps, threads), expected) << parts << " " << steps;
    }
  }
}

TEST(Lockstep, OneThreadDoesAllParts) {
  std::vector<int> calls(3);
  Lockstep lockstep(3, 10);
  const auto work = [&](int64_t, int64_t part) { ++calls[static_cast<size_t>(part)]; };
  lockstep.join(1, work);
  EXPECT_EQ(calls, std::vector<int>({10, 10, 10}));
  lockstep.join(0, work);
  EXPECT_EQ(calls, std::vector<int>({10, 10, 10}));
}

// The second thread takes long for a step that it has begun: the first does the rest without it.
TEST(Lockstep, WhoIsTooLateLeaves) {
  Lockstep lockstep(2, 100);
  std::atomic<bool> has_begun = false;
  int late_steps = 0;
  const auto main_thread = std::this_thread::get_id();
  const auto work = [&](int64_t step, int64_t part) {
    if (step == 0 && part == 0) {
      while (!has_begun) std::this_thread::yield();
    } else if (step == 0) {
      has_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    } else if (std::this_thread::get_id() != main_thread) {
      ++late_steps;
    }
  };
  std::thread second([&] { lockstep.join(1, work); });
  lockstep.join(0, work);
  second.join();
  EXPECT_EQ(late_steps, 0);
}

TEST(Lockstep, FailuresEndIt) {
  ThreadPool pool(3);
  for (int64_t failing = 0; failing < 3; ++failing) {
    Lockstep lockstep(3, 100);
    const auto work = [&](int64_t step, int64_t part) {
      if (step == 50 && part == failing) throw std::runtime_error("step 50");
    };
    const auto join = [&](int64_t begin, int64_t end) {
      for (int64_t own = begin; own < end; ++own) lockstep.join(own, work);
    };
    EXPECT_THROW(pool.parallel_for(3, 1, join), std::runtime_error);
  }
}

}  // namespace
}  // namespace tenon
