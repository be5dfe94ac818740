#include <algorithm>
#include <cmath>

#include "ops/attention/cpu_products.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/flex_attention/flex_attention.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// What the node's graph makes of `scores`, which it sees in the type `precision`.
template <typename T>
Tensor modified(KernelRun& run, const char* name, Tensor scores, ElementType precision) {
  if (!run.node().attribute(name)) return scores;
  const Shape shape = scores.shape();
  if (precision != scores.type()) {
    Tensor narrow(precision, shape, run.allocator());
    dispatch<float, double, float16, bfloat16>(precision, [&]<typename P>() {
      convert_elements(run.threads(), scores.data<T>().data(), narrow.mutable_data<P>().data(), narrow.elements());
    });
    scores = std::move(narrow);
  }
  Subgraph& graph = run.subgraph(name);
  graph.give_input(0, std::move(scores));
  graph.run();
  if (graph.output_count() != 1 || !graph.output(0).is_tensor()) {
    fail(ErrorCode::invalid_model, "{} must return one tensor, it returns {}", name,
         graph.output_count() == 1 ? graph.output(0).describe() : std::to_string(graph.output_count()));
  }
  const Value value = graph.take_output(0);
  const Tensor& result = value.tensor();
  if (result.type() != precision || !(result.shape() == shape)) {
    fail(ErrorCode::shape_mismatch, "{} is given {} {} and returns {}; they must be equal", name, name_of(precision),
         shape.to_string(), value.describe());
  }
  return as_type<T>(result, run.threads(), run.allocator());
}

class FlexAttention final : public Kernel {
 public:
  void run(KernelRun& run) const override {
    const ElementType precision = softmax_precision(run.node(), run.input(0).type());
    const bool wide = precision == ElementType::float64 || run.input(0).type() == ElementType::float64;
    dispatch_compute(wide ? ElementType::float64 : ElementType::float32,
                     [&]<typename T>() { compute<T>(run, precision); });
  }

 private:
  template <typename T>
  static void compute(KernelRun& run, ElementType precision) {
    const Shape &q = run.input(0).shape(), &k = run.input(1).shape(), &v = run.input(2).shape();
    const int64_t heads = q[1], rows = q[2], size = q[3], keys = k[2], v_size = v[3];
    const double scale = run.node().attribute("scale") ? static_cast<double>(run.node().float_attribute("scale", 1))
                                                       : 1 / std::sqrt(static_cast<double>(size));
    ComputeArguments<T> arguments(run);
    const T *queries = arguments.in(0), *key = arguments.in(1), *value = arguments.in(2);
    T* y = arguments.out(0);
    auto for_each_head = [&](auto&& body) {
      run.threads().parallel_for(q[0] * heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t shared = item / heads * k[1] + item % heads / (heads / k[1]);
          body(item, shared);
        }
      });
    };

    Tensor scores(element_type_of<T>, Shape{q[0], heads, rows, keys}, run.allocator());
    T* products = scores.mutable_data<T>().data();
    if (scores.elements() > 0) {
      for_each_head([&](int64_t item, int64_t shared) {
        multiply(run.threads(), rows, keys, size, queries + item * rows * size, size, key + shared * keys * size, size,
                 true, products + item * rows * keys, keys, static_cast<T>(scale));
      });
    }
    Tensor weights = modified<T>(run, "score_mod", scores, precision);
    normalize<T>(run, weights);
    weights = modified<T>(run, "prob_mod", std::move(weights), precision);
    const T* factors = weights.data<T>().data();
    if (run.output(0).elements() > 0) {
      for_each_head([&](int64_t item, int64_t shared) {
        multiply(run.threads(), rows, v_size, keys, factors + item * rows * keys, keys, value + shared * keys * v_size,
                 v_size, false, y + item * rows * v_size, v_size, T(1));
      });
    }
    arguments.finish();
  }

  // Softmax of the rows, in new memory: a modifier may have returned what it does not own.
  template <typename T>
  static void normalize(KernelRun& run, Tensor& weights) {
    if (weights.elements() == 0) return;
    const int64_t keys = weights.dim(3);
    const T* x = weights.data<T>().data();
    Tensor result(weights.type(), weights.shape(), run.allocator());
    T* y = result.mutable_data<T>().data();
    run.threads().parallel_for(weights.elements() / keys, std::max<int64_t>(1, 4096 / keys),
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t row = begin; row < end; ++row)
                                   softmax(x + row * keys, y + row * keys, keys);
                               });
    weights = std::move(result);
  }
};

}  // namespace

void cpu_flex_attention(CpuKernels& list) {
  list.add(
      "FlexAttention", [](const NodeInfo&) { return std::make_unique<FlexAttention>(); }, nullptr, "ai.onnx.preview");
}

}  // namespace tenon::ops
