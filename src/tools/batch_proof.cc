#include "tools/batch_proof.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/fail.h"
#include "tenon/tools/compare_values.h"
#include "tenon/tools/make_inputs.h"

namespace tenon::tools {

Tensor rows_of(const Tensor& tensor, size_t axis, int64_t first, int64_t count, int64_t length) {
  const int at = static_cast<int>(axis);
  if (tensor.type() == ElementType::string || bits_of(tensor.type()) < 8)
    fail(ErrorCode::unsupported, "rows of {} cannot be taken apart", name_of(tensor.type()));
  Shape shape = tensor.shape();
  shape[at] = count * length;
  Tensor result(tensor.type(), shape);
  const int64_t inner = tensor.shape().elements(at + 1, tensor.rank()) * (bits_of(tensor.type()) / 8);
  const auto* from = static_cast<const std::byte*>(tensor.raw()) + first * length * inner;
  auto* to = static_cast<std::byte*>(result.mutable_raw());
  const int64_t bytes = count * length * inner;
  for (int64_t outer = 0; outer < tensor.shape().elements(0, at); ++outer) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    to += bytes;
    from += tensor.dim(at) * inner;
  }
  return result;
}

namespace {

constexpr int64_t most_rows = 3;

// One row, repeated along the axis.
Tensor repeated_row(const Tensor& tensor, size_t axis, int64_t row, int64_t times) {
  Tensor one = rows_of(tensor, axis, row, 1);
  if (times == 1) return one;
  const int at = static_cast<int>(axis);
  Shape shape = one.shape();
  shape[at] = times;
  Tensor result(one.type(), shape);
  const auto bytes = static_cast<size_t>(one.shape().elements(at + 1, one.rank()) * (bits_of(one.type()) / 8));
  const auto* from = static_cast<const std::byte*>(one.raw());
  auto* to = static_cast<std::byte*>(result.mutable_raw());
  for (int64_t outer = 0; outer < one.shape().elements(0, at); ++outer, from += bytes) {
    for (int64_t i = 0; i < times; ++i, to += bytes) std::memcpy(to, from, bytes);
  }
  return result;
}

class Prover {
 public:
  Prover(const OnnxModel& original, const OnnxModel& freed, const RowAxes& inputs, const RowAxes& values,
         int64_t old_size, const DynamicOptions& options)
      : original_(original), freed_(freed), inputs_(inputs), values_(values), old_size_(old_size), options_(options) {}

  BatchProof run() {
    SessionOptions plain;
    plain.level = OptimizationLevel::basic;
    const Session before = original_.open(plain);
    std::optional<Session> opened;
    try {
      opened = freed_.open(plain);
    } catch (const Error& error) {
      proof_.failures.push_back({error.node(), error.tensor(), error.message()});
      return std::move(proof_);
    }
    const Session& after = *opened;
    all_rows_ = make_rows(after);
    for (int64_t row = 0; row < most_rows; ++row) expected_.push_back(before.run(one_row(row)));
    for (int64_t count = 1; count <= most_rows && proof_.failures.empty(); ++count) {
      compare(after, count);
      proof_.sizes.push_back(count);
    }
    if (!proof_.failures.empty()) proof_.sizes.clear();
    return std::move(proof_);
  }

 private:
  NamedValues make_rows(const Session& session) const {
    InputSources sources;
    sources.seed = options_.seed;
    std::set<std::string> names;
    for (const ValueInfo& input : session.inputs()) names.insert(input.shape.begin(), input.shape.end());
    for (const std::string& name : names) {
      if (name.find_first_not_of("0123456789") != std::string::npos) sources.dims[name] = 5;
    }
    for (const auto& [name, size] : options_.sizes) sources.dims[name] = size;
    sources.dims[options_.name] = most_rows;
    return make_inputs(session, sources).values;
  }

  NamedValues one_row(int64_t row) const {
    NamedValues result = all_rows_;
    for (const auto& [name, axis] : inputs_)
      result[name] = repeated_row(all_rows_.at(name).tensor(), axis, row, old_size_);
    return result;
  }

  void compare(const Session& session, int64_t count) {
    NamedValues inputs = all_rows_;
    for (const auto& [name, axis] : inputs_) inputs[name] = rows_of(all_rows_.at(name).tensor(), axis, 0, count);
    NamedValues actual;
    try {
      actual = session.run(inputs);
    } catch (const Error& error) {
      proof_.failures.push_back(
          {error.node(), error.tensor(), fmt::format("with {} rows: {}", count, error.message())});
      return;
    }
    size_t compared = 0;
    for (const auto& [name, value] : actual) {
      const std::string problem = compare_output(name, value, count, compared);
      if (!problem.empty()) proof_.failures.push_back({"", name, fmt::format("with {} rows: {}", count, problem)});
    }
    if (compared == 0 && proof_.failures.empty())
      proof_.failures.push_back({"", "", "no output has rows that could be compared"});
  }

  std::string compare_output(const std::string& name, const Value& value, int64_t count, size_t& compared) {
    if (!value.is_tensor()) {
      if (count == 1) proof_.notes.push_back(fmt::format("the output '{}' is no tensor and was not compared", name));
      return "";
    }
    auto axis = values_.find(name);
    for (int64_t row = 0; row < count; ++row) {
      const Tensor& whole = expected_[static_cast<size_t>(row)].at(name).tensor();
      std::string problem;
      if (axis == values_.end()) {
        problem = difference_of(name, value.tensor(), whole);
        if (!problem.empty()) return "it has no axis for rows, and yet depends on them: " + problem;
        continue;
      }
      const int at = static_cast<int>(axis->second);
      const int64_t length = whole.dim(at) / old_size_;
      if (value.tensor().dim(at) != count * length)
        return fmt::format("its shape is {} where {} rows of {} were expected", value.tensor().shape().to_string(),
                           count, length);
      problem = difference_of(name, rows_of(value.tensor(), axis->second, row, 1, length),
                              rows_of(whole, axis->second, 0, 1, length));
      if (!problem.empty()) return fmt::format("row {} differs from the original: {}", row, problem);
    }
    compared += axis != values_.end();
    return "";
  }

  // Floats may differ by a share of the largest one, everything else not at all.
  std::string difference_of(const std::string& name, const Tensor& actual, const Tensor& expected) {
    const double by_size = largest_difference({{name, actual}}, {{name, expected}});
    if (by_size > options_.tolerance || !is_float(expected.type())) return difference(actual, expected, {0, 0});
    proof_.largest_difference = std::max(proof_.largest_difference, by_size);
    return "";
  }

  static bool is_float(ElementType type) {
    return type == ElementType::float32 || type == ElementType::float64 || type == ElementType::float16 ||
           type == ElementType::bfloat16;
  }

  const OnnxModel &original_, &freed_;
  const RowAxes &inputs_, &values_;
  int64_t old_size_;
  const DynamicOptions& options_;
  NamedValues all_rows_;
  std::vector<NamedValues> expected_;
  BatchProof proof_;
};

}  // namespace

BatchProof prove_rows(const OnnxModel& original, const OnnxModel& freed, const RowAxes& inputs, const RowAxes& values,
                      int64_t old_size, const DynamicOptions& options) {
  return Prover(original, freed, inputs, values, old_size, options).run();
}

}  // namespace tenon::tools
