#include "tools/quantize/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/element_value.h"

namespace tenon::tools {
namespace {

// Sums over all samples.
struct Sums {
  double power = 0, error = 0, product = 0, actual_power = 0, largest = 0;
  int64_t elements = 0, different = 0;
  bool is_float = false;

  void add(const Tensor& actual, const Tensor& expected) {
    is_float = is_floating(expected.type());
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const double e = element_as_double(expected, i), a = element_as_double(actual, i);
      ++elements;
      different += a != e;
      if (!std::isfinite(e)) continue;
      const double off = std::isfinite(a) ? a - e : e == 0 ? 1 : e;
      power += e * e;
      error += off * off;
      product += a * e;
      actual_power += a * a;
      largest = std::max(largest, std::abs(off));
    }
  }

  double loss() const {
    if (!is_float) return elements == 0 ? 0 : static_cast<double>(different) / static_cast<double>(elements);
    if (error == 0) return 0;
    return power == 0 ? std::numeric_limits<double>::infinity() : error / power;
  }
  double cosine() const {
    const double lengths = std::sqrt(power * actual_power);
    return lengths == 0 ? 1 : product / lengths;
  }
};

bool is_number(const Value& value) { return value.is_tensor() && value.tensor().type() != ElementType::string; }

}  // namespace

double decibels(double loss) { return loss > 0 ? -10 * std::log10(loss) : std::numeric_limits<double>::infinity(); }

Evaluation::Evaluation(const OnnxModel& original, std::vector<NamedValues> samples, const QuantizeOptions& options)
    : samples_(std::move(samples)), session_(options.session) {
  const Session session = original.open(session_);
  for (const NamedValues& sample : samples_) expected_.push_back(session.run(sample));
}

Evaluation::Result Evaluation::of(const OnnxModel& model) const {
  const Session session = model.open(session_);
  std::map<std::string, Sums> sums;
  Result result;
  for (size_t i = 0; i < samples_.size(); ++i) {
    const NamedValues actual = session.run(samples_[i]);
    for (const auto& [name, expected] : expected_[i]) {
      if (!is_number(expected)) continue;
      const Value& value = actual.find(name)->second;
      if (value.tensor().shape() == expected.tensor().shape())
        sums[name].add(value.tensor(), expected.tensor());
      else if (std::ranges::find(result.not_compared, name) == result.not_compared.end())
        result.not_compared.push_back(name);
    }
  }
  for (const auto& [name, sum] : sums) {
    result.outputs.push_back({name, decibels(sum.loss()), sum.cosine(), sum.largest});
    result.loss = std::max(result.loss, sum.loss());
  }
  return result;
}

}  // namespace tenon::tools
