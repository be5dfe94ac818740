#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>

#include "base/fail.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/coordinates.h"
#include "ops/resize/sampling.h"

namespace tenon::ops {
namespace {

// Tables in the GPU's memory: for each output along an axis, which inputs it is made of, and by which weights. An index
// below 0: the extrapolation value.
struct Tables {
  std::vector<int32_t> indices;
  std::vector<double> weights;
};

// An axis of the output, or several that stay as they are.
struct Axis {
  int64_t size, stride;  // of the input: elements apart
  int64_t taps = 0;      // 0: stays as it is
  int64_t first = 0;     // in the tables
};

std::vector<Axis> axes_of(const ResizeMode& mode, const std::vector<ResizedAxis>& resized, Tables& tables) {
  std::vector<Axis> axes;  // innermost first
  int64_t stride = 1;
  for (size_t k = resized.size(); k-- > 0;) {
    const ResizedAxis& own = resized[k];
    if (own.is_identity(mode)) {
      if (!axes.empty() && axes.back().taps == 0)
        axes.back().size *= own.output;
      else
        axes.push_back({own.output, stride});
    } else {
      if (own.input > std::numeric_limits<int32_t>::max())
        fail(ErrorCode::unsupported, "an axis of {} elements is more than this kernel can resize", own.input);
      Sampling sampling = sample_axis(mode, own);
      for (size_t o = 0; o < sampling.outside.size(); ++o) {
        if (sampling.outside[o]) sampling.indices[o * static_cast<size_t>(sampling.taps)] = -1;
      }
      axes.push_back({own.output, stride, sampling.taps, std::ssize(tables.indices)});
      for (int64_t index : sampling.indices) tables.indices.push_back(static_cast<int32_t>(index));
      tables.weights.insert(tables.weights.end(), sampling.weights.begin(), sampling.weights.end());
    }
    stride *= own.input;
  }
  std::ranges::reverse(axes);
  return axes;
}

template <typename T>
std::shared_ptr<void> uploaded(KernelRun& run, const std::vector<T>& list) {
  const auto bytes = static_cast<int64_t>(list.size() * sizeof(T));
  std::shared_ptr<void> memory = queue_of(run).gpu().allocate(bytes);
  queue_of(run).upload(memory.get(), list.data(), bytes);
  return memory;
}

std::string limits_text(ElementType type) {
  const int bits = static_cast<int>(bits_of(type));
  if (types::unsigned_ints.contains(type))
    return fmt::format("#define LOW 0\n#define HIGH {}ull\n", bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  const uint64_t high = (uint64_t{1} << (bits - 1)) - 1;
  return fmt::format("#define LOW (-{}ll - 1)\n#define HIGH {}ll\n", high, high);
}

// How a number becomes an element: of an integer, its fraction is cut off.
std::string functions_of(ElementType type) {
  std::string text = fmt::format("typedef {} T;\n", cuda::type_text(type));
  if (types::floats.contains(type))
    return text + "typedef Wide<T> A;\ninline T element_of(A r) { return narrow<T>(r); }\n";
  text += fmt::format("typedef {} A;\n", bits_of(type) <= 16 ? "float" : "double");
  if (type == ElementType::boolean) return text + "inline T element_of(A r) { return r != 0; }\n";
  return text + limits_text(type) +
         "inline T element_of(A r) { return r >= (A)HIGH ? (T)HIGH : r > (A)LOW ? (T)r : (T)LOW; }\n";
}

class Resize final : public Kernel {
 public:
  explicit Resize(const NodeInfo& info)
      : mode_(resize_mode(info.node())),
        extrapolation_(cuda::number_text(info.node().float_attribute("extrapolation_value", 0), ElementType::float64)) {
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    if (x.elements() == 0)
      fail(ErrorCode::invalid_value, "an empty tensor of shape {} cannot be resized to {}", x.shape().to_string(),
           y.shape().to_string());
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, x, y); });
    if (!plan.loop) return queue_of(run).copy(y.mutable_raw(), x.raw(), y.bytes());
    plan.loop->run(run, {x.raw(), y.raw(), plan.indices.get(), plan.weights.get()});
  }

 private:
  struct Plan {
    std::shared_ptr<void> indices, weights;
    std::optional<CudaLoop> loop;  // without: nothing changes
  };

  Plan prepare(KernelRun& run, const Tensor& x, const Tensor& y) const {
    auto given = [&](size_t i) { return run.has_input(i) ? &run.input(i) : nullptr; };
    const std::vector<ResizedAxis> resized =
        axes_to_resize(run.node(), mode_, x.shape(), y.shape(), given(1), given(2), given(3));
    Plan plan;
    if (std::ranges::all_of(resized, [&](const ResizedAxis& axis) { return axis.is_identity(mode_); })) return plan;
    Tables tables;
    const std::vector<Axis> axes = axes_of(mode_, resized, tables);
    plan.indices = uploaded(run, tables.indices);
    const bool is_double =
        x.type() == ElementType::float64 || (!types::floats.contains(x.type()) && bits_of(x.type()) > 16);
    plan.weights = is_double ? uploaded(run, tables.weights)
                             : uploaded(run, std::vector<float>(tables.weights.begin(), tables.weights.end()));
    std::vector<int64_t> numbers;
    for (const Axis& axis : axes) numbers.push_back(axis.size);
    const std::string text = text_of(axes, y.elements(), numbers);
    plan.loop.emplace(run, y.elements(), "const T* x, T* y, const i32* indices, const A* weights", text, numbers,
                      functions_of(x.type()));
    return plan;
  }

  std::string text_of(const std::vector<Axis>& axes, int64_t count, std::vector<int64_t>& numbers) const {
    const bool is_nearest = mode_.filter == ResizeMode::Filter::nearest;
    std::string text = coordinates_text(static_cast<int>(axes.size()), 0, count), sums;
    std::string place = "0";
    std::vector<size_t> changed;
    for (size_t k = 0; k < axes.size(); ++k) {
      const size_t at = numbers.size();
      numbers.insert(numbers.end(), {axes[k].stride, axes[k].first, axes[k].taps});
      if (axes[k].taps == 0) {
        place += fmt::format(" + c{} * v[{}]", k, at);
        continue;
      }
      changed.push_back(k);
      // Few taps are text, so that their loops vanish.
      const std::string taps = axes[k].taps <= 4 ? std::to_string(axes[k].taps) : fmt::format("v[{}]", at + 2);
      text += fmt::format("const i64 stride{0} = v[{1}], first{0} = v[{2}] + c{0} * {3}, taps{0} = {3};\n    ", k, at,
                          at + 1, taps);
      if (mode_.transform == ResizeMode::Transform::crop)
        text +=
            fmt::format("if (indices[first{}] < 0) {{ y[i] = element_of((A){}); continue; }}\n    ", k, extrapolation_);
    }
    text += fmt::format("const i64 place = {};\n    ", place);
    if (is_nearest) {
      std::string at = "place";
      for (size_t k : changed) at += fmt::format(" + indices[first{0}] * stride{0}", k);
      return text + fmt::format("y[i] = x[{}];", at);
    }
    // The sums of the first axis are the innermost.
    std::string outer = "place";
    for (size_t k : changed | std::views::reverse) {
      sums += fmt::format(
          "A sum{0} = 0;\n    for (i64 k{0} = first{0}; k{0} < first{0} + taps{0}; ++k{0}) {{\n    "
          "const i64 place{0} = {1} + indices[k{0}] * stride{0};\n    ",
          k, outer);
      outer = fmt::format("place{}", k);
    }
    std::string value = fmt::format("(A)widen(x[{}])", outer);
    for (size_t k : changed) {
      sums += fmt::format("sum{0} += weights[k{0}] * {1};\n    }}\n    ", k, value);
      value = fmt::format("sum{}", k);
    }
    return text + sums + fmt::format("y[i] = element_of({});", value);
  }

  ResizeMode mode_;
  std::string extrapolation_;
};

std::string decline(const ir::Node& node) {
  const bool crops = node.string_attribute("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  if (crops && node.input(1) && !node.input(1)->is_fixed())
    return "the CUDA kernel of Resize takes a constant roi only";
  return "";
}

}  // namespace

void cuda_resize(CudaKernels& list) {
  list.add("Resize", [](const NodeInfo& info) { return std::make_unique<Resize>(info); },
           {.types = types::numbers | types::bools, .host_inputs = {1, 2, 3}, .decline = decline});
}

}  // namespace tenon::ops
