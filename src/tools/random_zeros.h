#pragma once

#include <vector>

#include "tenon/tools/compare_values.h"

namespace tenon::tools {

// Judges an output whose elements are 0 at random, as those of Bernoulli and Dropout, by many draws of it.
class RandomZeros {
 public:
  // How likely an element is not 0: as that element of an input says (Bernoulli), or 1 less it, or all alike (Dropout).
  // It is 1 then, but input / p where all have the probability p and the output is not of bools.
  struct Nonzero {
    enum class Probability : uint8_t { input, one_less_input, given };
    Probability probability = Probability::input;
    double given = 0;
  };

  // `expected` is one draw.
  RandomZeros(const Tensor& input, const Nonzero& nonzero, const Value& expected, const Tolerance& tolerance);

  // What is wrong with the type, the shape or an element of a draw, "" if nothing is. The draw counts then.
  std::string add(const Value& drawn);

  // The first element that was not 0 in another share of the draws than is likely. A difference of six standard errors
  // and ten draws counts as one: chance makes it less than once in a hundred million elements.
  std::string problem() const;

 private:
  Value expected_;
  Tolerance tolerance_;
  std::vector<double> probabilities_, values_;  // of each element to be not 0, and what it is then
  std::vector<int64_t> counts_;                 // of draws in which it was not
  int64_t draws_ = 0;
};

}  // namespace tenon::tools
