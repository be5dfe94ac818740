#include <fmt/format.h>
#include <optional>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

ReducePlan rows_of(const Shape& shape, int64_t axis) {
  std::vector<int64_t> axes;
  for (int64_t a = axis < 0 ? axis + shape.rank() : axis; a < shape.rank(); ++a) axes.push_back(a);
  return {shape, axes};
}

// Declares mean, where `centered`, and factor: by what the elements are multiplied.
std::string statistics_text(const CudaRows& rows, bool centered, float epsilon) {
  std::string text = "A sum = 0, squares = 0;\n  ";
  if (centered) text += rows.each("sum += value;") + "sum = " + rows.fold("Sum", "sum") + ";\n  ";
  text += std::string("const A mean = ") + (centered ? "sum / (A)size" : "0") + ";\n  ";
  text +=
      rows.each("squares += (value - mean) * (value - mean);") + "squares = " + rows.fold("Sum", "squares") + ";\n  ";
  return text + fmt::format("const A factor = (A)1 / sqrt(squares / (A)size + (A){});\n  ",
                            cuda::number_text(epsilon, ElementType::float64));
}

// Where the element of a scale or bias is that belongs to element i of a row, e of X.
std::string broadcast_text(const Shape& own, const Shape& x, int64_t row_size, std::vector<int64_t>& numbers) {
  const int missing = x.rank() - own.rank();
  if (own.elements() == row_size) {
    // All axes but those of a row have size 1.
    bool is_row = true;
    int64_t inner = 1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      const int64_t size = axis < missing ? 1 : own[axis - missing];
      is_row = is_row && size == (inner < row_size ? x[axis] : 1);
      inner *= x[axis];
    }
    if (is_row) return "i";
  }
  const std::vector<int64_t> x_steps = steps_of(x), own_steps = steps_of(own);
  std::string text = "0";
  for (int axis = missing; axis < x.rank(); ++axis) {
    if (own[axis - missing] == 1) continue;
    text += fmt::format(" + e / v[{}] % v[{}] * v[{}]", numbers.size(), numbers.size() + 1, numbers.size() + 2);
    numbers.insert(numbers.end(),
                   {x_steps[static_cast<size_t>(axis)], x[axis], own_steps[static_cast<size_t>(axis - missing)]});
  }
  return text;
}

// Normalises the last axes of X: by mean and variance, or by the mean of squares alone.
class Normalization final : public Kernel {
 public:
  Normalization(const NodeInfo& info, bool centered)
      : axis_(info.node().int_attribute("axis", -1)),
        epsilon_(info.node().float_attribute("epsilon", 1e-5f)),
        centered_(centered) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    const void *y = output_address(run, 0), *means = centered_ ? output_address(run, 1) : nullptr,
               *deviations = centered_ ? output_address(run, 2) : nullptr;
    const auto& plan = run.per_plan<std::optional<CudaBlocks>>([&] { return prepare(run); });
    if (plan) plan->run(run, {x.raw(), run.input(1).raw(), input_address(run, 2), y, means, deviations});
  }

 private:
  std::optional<CudaBlocks> prepare(KernelRun& run) const {
    const Shape& shape = run.input(0).shape();
    CudaRows rows(rows_of(shape, axis_));
    if (rows.rows() == 0) return std::nullopt;
    std::vector<int64_t> numbers = rows.numbers();
    std::vector<CudaRows::Array> arrays{{"x", run.input(0).type(), "e"}};
    auto broadcast = [&](size_t input, std::string_view name) {
      const std::string index = broadcast_text(run.input(input).shape(), shape, rows.size(), numbers);
      if (index == "i") arrays.push_back({name, run.input(1).type(), index});
      return fmt::format("(A)widen({}[{}])", name, index);
    };
    std::string y = "(value - mean) * factor * " + broadcast(1, "scale");
    if (run.has_input(2)) y += " + " + broadcast(2, "bias");
    if (run.wants_output(0)) arrays.push_back({"y", run.output(0).type(), "e", true});
    rows.use_packs(arrays);
    std::string text = rows.begin() + statistics_text(rows, centered_, epsilon_);
    if (run.wants_output(0)) text += rows.each(fmt::format("y[e] = narrow<Y>({});", y));
    if (centered_ && run.wants_output(1)) text += "if (is_first) means[row] = narrow<U>(mean);\n  ";
    if (centered_ && run.wants_output(2)) text += "if (is_first) deviations[row] = narrow<U>(factor);\n  ";
    const std::string functions =
        CudaRows::functions() + types_text(run.input(0).type()) +
        fmt::format("typedef {} S;\ntypedef {} Y;\ntypedef {} U;\n", input_type_text(run, 1), output_type_text(run, 0),
                    centered_ ? output_type_text(run, run.wants_output(1) ? 1 : 2) : "float");
    return CudaBlocks(run, "const T* x, const S* scale, const S* bias, Y* y, U* means, U* deviations", functions, text,
                      numbers, rows.grid());
  }

  int64_t axis_;
  float epsilon_;
  bool centered_;
};

// The same of a sum, which is made on the way.
class SkipNormalization final : public Kernel {
 public:
  SkipNormalization(const NodeInfo& info, bool centered)
      : axis_(info.node().int_attribute("axis", -1)),
        epsilon_(info.node().float_attribute("epsilon", 1e-5f)),
        centered_(centered) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    if (x.elements() == 0) return;
    const size_t second = centered_ ? 4 : 3;
    const void* y = run.output(0).raw();
    const void* sum = output_address(run, 1);
    const auto& blocks = run.per_plan<CudaBlocks>([&] {
      CudaRows rows(rows_of(x.shape(), axis_));
      std::vector<int64_t> numbers = rows.numbers();
      std::string value = "widen(x[e])";
      const ElementType type = x.type();
      std::vector<CudaRows::Array> arrays{
          {"x", type, "e"}, {"scale", type, "i"}, {"y", type, "e", true}, {"sum_out", type, "e", true}};
      for (size_t input : {size_t{1}, second}) {
        if (!run.has_input(input)) continue;
        const std::string_view name = input == 1 ? "skip" : "addend";
        const int64_t own_rows = run.input(input).elements() / rows.size();
        // Its rows are repeated, if they are fewer.
        const std::string index = own_rows == rows.rows() ? "e"
                                  : own_rows == 1         ? "i"
                                                          : fmt::format("row % v[{}] * size + i", numbers.size());
        numbers.push_back(own_rows);
        arrays.push_back({name, type, index});
        value += fmt::format(" + widen({}[{}])", name, index);
      }
      const bool has_bias = centered_ && run.has_input(3);
      if (has_bias) arrays.push_back({"bias", type, "i"});
      rows.use_packs(std::move(arrays));
      rows.set_elements("float", value);
      std::string text = rows.begin() + statistics_text(rows, centered_, epsilon_);
      if (run.wants_output(1)) text += rows.each("sum_out[e] = narrow<T>(value);");
      text += rows.each(fmt::format("y[e] = narrow<T>((value - mean) * factor * widen(scale[i]){});",
                                    has_bias ? " + widen(bias[i])" : ""));
      return CudaBlocks(
          run, "const T* x, const T* skip, const T* addend, const T* scale, const T* bias, T* y, T* sum_out",
          CudaRows::functions() + fmt::format("typedef {} T;\ntypedef float A;\n", cuda::type_text(x.type())), text,
          numbers, rows.grid());
    });
    blocks.run(run, {x.raw(), run.input(1).raw(), input_address(run, second), run.input(2).raw(),
                     centered_ ? input_address(run, 3) : nullptr, y, sum});
  }

  // Where rows are read again, the sum is written before what it is made of.
  bool may_overwrite(size_t input) const override { return input < 2; }

 private:
  int64_t axis_;
  float epsilon_;
  bool centered_;
};

}  // namespace

void cuda_layer_norm(CudaKernels& list) {
  list.add("LayerNormalization", [](const NodeInfo& info) { return std::make_unique<Normalization>(info, true); },
           {.types = types::floats});
  list.add("RMSNormalization", [](const NodeInfo& info) { return std::make_unique<Normalization>(info, false); },
           {.types = types::floats});
  const CudaKernelOptions skip{.types = types::floats, .domain = tenon_domain};
  list.add(
      "SkipLayerNormalization", [](const NodeInfo& info) { return std::make_unique<SkipNormalization>(info, true); },
      skip);
  list.add(
      "SkipRMSNormalization", [](const NodeInfo& info) { return std::make_unique<SkipNormalization>(info, false); },
      skip);
}

}  // namespace tenon::ops
