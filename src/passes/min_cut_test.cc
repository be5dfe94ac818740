#include "passes/min_cut.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::passes {
namespace {

struct Price {
  int a, b;
  int64_t cost;
};

int64_t cost_of(const std::vector<Price>& prices, const std::vector<bool>& on_first) {
  int64_t total = 0;
  for (const Price& p : prices) {
    if (on_first[static_cast<size_t>(p.a)] && !on_first[static_cast<size_t>(p.b)]) total += p.cost;
  }
  return total;
}

TEST(MinCut, EveryThingAloneStaysOnTheSecondSide) {
  MinCut cut;
  const int a = cut.add();
  EXPECT_EQ(cut.solve(), (std::vector<bool>{true, false, false}));
  cut.price(MinCut::first, a, 3);
  EXPECT_EQ(cut.solve(), (std::vector<bool>{true, false, true}));
}

TEST(MinCut, EqualCostsKeepTheSecondSide) {
  MinCut cut;
  const int a = cut.add();
  cut.price(MinCut::first, a, 3);
  cut.price(a, MinCut::second, 3);
  EXPECT_FALSE(cut.solve()[2]);
}

TEST(MinCut, FindsWhatTryingEverythingFinds) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int things = 1 + static_cast<int>(random() % 7);
    MinCut cut;
    for (int i = 0; i < things; ++i) cut.add();
    std::vector<Price> prices;
    for (unsigned i = random() % 20; i > 0; --i) {
      const auto any = [&] { return static_cast<int>(random() % static_cast<unsigned>(things + 2)); };
      prices.push_back({any(), any(), static_cast<int64_t>(random() % 10)});
      if (prices.back().a == prices.back().b) prices.pop_back();
    }
    for (const Price& p : prices) cut.price(p.a, p.b, p.cost);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (unsigned sides = 0; sides < 1u << things; ++sides) {
      std::vector<bool> on_first = {true, false};
      for (int i = 0; i < things; ++i) on_first.push_back(sides >> i & 1);
      least = std::min(least, cost_of(prices, on_first));
    }
    EXPECT_EQ(cost_of(prices, cut.solve()), least) << "round " << round;
  }
}

}  // namespace
}  // namespace tenon::passes
