#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/attention.h"
#include "random_floats.h"

namespace tenon::kernels {
namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

struct Sizes {
  int64_t queries, keys, k_size, v_size;
};

// Rows lie `gap` floats further apart than they are long.
struct Inputs {
  Sizes n;
  int64_t gap;
  std::vector<float> q, k, v;

  Inputs(const Sizes& sizes, int64_t row_gap)
      : n(sizes),
        gap(row_gap),
        q(random_floats(n.queries * (n.k_size + gap), 1)),
        k(random_floats(n.keys * (n.k_size + gap), 2)),
        v(random_floats(n.keys * (n.v_size + gap), 3)) {
    // Later keys score higher, so that the highest score changes from one part to the next.
    for (size_t i = 0; i < k.size(); ++i) k[i] *= 1 + 4 * static_cast<float>(i) / static_cast<float>(k.size());
  }

  std::vector<float> run(float scale, AttentionHead::ChangeScores change) const {
    std::vector<float> out(static_cast<size_t>(n.queries * (n.v_size + gap)), 7.0f);
    attention({n.queries,
               n.keys,
               n.k_size,
               n.v_size,
               {q.data(), n.k_size + gap},
               {k.data(), n.k_size + gap},
               {v.data(), n.v_size + gap},
               out.data(),
               n.v_size + gap,
               scale,
               change});
    return out;
  }

  // Element (query, column) in double precision, where addend(query, key) is added to the scores.
  template <class Addend>
  double expected(int64_t query, int64_t column, double scale, Addend addend) const {
    std::vector<double> scores;
    double highest = hidden, sum = 0, result = 0;
    for (int64_t j = 0; j < n.keys; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < n.k_size; ++i)
        dot += double{q[static_cast<size_t>(query * (n.k_size + gap) + i)]} *
               k[static_cast<size_t>(j * (n.k_size + gap) + i)];
      scores.push_back(scale * dot + addend(query, j));
      highest = std::max(highest, scores.back());
    }
    if (highest == hidden) return 0;
    for (int64_t j = 0; j < n.keys; ++j) {
      const double weight = std::exp(scores[static_cast<size_t>(j)] - highest);
      sum += weight;
      result += weight * v[static_cast<size_t>(j * (n.v_size + gap) + column)];
    }
    return result / sum;
  }
};

template <class Addend>
void expect_attention(const Sizes& n, int64_t gap, Addend addend) {
  constexpr float scale = 0.5f;
  const Inputs inputs(n, gap);
  const auto out = inputs.run(scale, [&](const AttentionScores& scores) {
    for (int64_t j = scores.first_key; j < scores.last_key; ++j) {
      for (int64_t i = scores.first_query; i < scores.last_query; ++i)
        scores.row(j)[i - scores.first_query] += static_cast<float>(addend(i, j));
    }
  });
  for (int64_t i = 0; i < n.queries; ++i) {
    const float* row = out.data() + i * (n.v_size + gap);
    for (int64_t c = 0; c < n.v_size; ++c)
      ASSERT_NEAR(row[c], inputs.expected(i, c, scale, addend), 5e-6)
          << n.queries << " " << n.keys << " " << n.k_size << " " << n.v_size << ": " << i << " " << c;
    for (int64_t c = n.v_size; c < n.v_size + gap; ++c) ASSERT_EQ(row[c], 7.0f) << "written beside the row";
  }
}

class Attention : public testing::TestWithParam<Isa> {};

TEST_P(Attention, MatchesReference) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(attention_isa(), GetParam());
  const auto nothing = [](int64_t, int64_t) { return 0.0; };
  for (const Sizes& n :
       {Sizes{1, 1, 1, 1}, Sizes{5, 7, 3, 2}, Sizes{13, 255, 8, 5}, Sizes{33, 256, 64, 64}, Sizes{12, 257, 16, 80},
        Sizes{70, 600, 20, 17}, Sizes{150, 270, 8, 5}, Sizes{5, 40, 1021, 3}, Sizes{79, 480, 40, 49}}) {
    expect_attention(n, 0, nothing);
    expect_attention(n, 3, nothing);
  }
}

// The first query sees nothing, others the keys up to theirs, and of those beyond the first part only some.
TEST_P(Attention, HiddenKeysCountNothing) {
  const ScopedIsa forced(GetParam());
  for (int64_t keys : {400, 600}) {
    expect_attention({70, keys, 16, 9}, 0, [](int64_t query, int64_t key) {
      return key >= query * 10 || (key > 300 && key % 3 == 0) ? double{hidden} : 0.1 * static_cast<double>(key % 5);
    });
  }
}

TEST_P(Attention, AQueryDoesNotDependOnTheOthers) {
  const ScopedIsa forced(GetParam());
  const Sizes n{50, 300, 24, 10};
  const Inputs all(n, 0);
  const auto nothing = [](const AttentionScores&) {};
  const auto together = all.run(0.3f, nothing);
  for (int64_t query : {0, 17, 49}) {
    Inputs one = all;
    one.n.queries = 1;
    one.q.erase(one.q.begin(), one.q.begin() + query * n.k_size);
    const auto alone = one.run(0.3f, nothing);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + query * n.v_size)) << query;
  }
}

TEST_P(Attention, NaNStaysNaN) {
  const ScopedIsa forced(GetParam());
  Inputs inputs({3, 4, 2, 2}, 0);
  inputs.q[2] = NAN;
  const auto out = inputs.run(1, [](const AttentionScores&) {});
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i / 2 == 1) << i;
}

// Some floats of every size, and many about where weights become 0.
TEST_P(Attention, WeightsAreExponentials) {
  const ScopedIsa forced(GetParam());
  const AttentionKernels& kernels = attention_kernels();
  ASSERT_EQ(kernels.isa, GetParam());
  constexpr uint32_t step = 997;
  std::vector<float> scores;
  for (uint32_t bits = 0; bits < std::bit_cast<uint32_t>(100.0f); bits += step)
    scores.push_back(-std::bit_cast<float>(bits));
  for (int i = 0; i < 20000; ++i) scores.push_back(-88.5f + 1e-4f * static_cast<float>(i));
  scores.push_back(hidden);
  do {
    scores.push_back(NAN);
  } while (scores.size() % static_cast<size_t>(kernels.width) != 0);
  std::vector<float> weights = scores, sums(scores.size()), highest(scores.size());
  const int64_t n = std::ssize(scores);
  kernels.to_weights(weights.data(), 1, n, n, highest.data(), sums.data());
  // Without fused multiply-adds products of large scores are rounded.
  const double allowed = GetParam() == Isa::portable ? 5e-6 : 6e-7;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double expected = std::exp(static_cast<double>(scores[i]));
    if (std::isnan(scores[i])) {
      ASSERT_TRUE(std::isnan(weights[i]));
    } else {
      ASSERT_NEAR(weights[i], expected, allowed * expected + std::numeric_limits<float>::min()) << scores[i];
    }
    if (scores[i] < -90) {
      ASSERT_EQ(weights[i], 0.0f) << scores[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Attention, testing::ValuesIn(available_wide_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
