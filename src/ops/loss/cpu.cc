#include <optional>

#include "ops/cpu_support/axis_view.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/indices.h"
#include "ops/softmax/cpu_log_softmax.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class Loss final : public Kernel {
 public:
  Loss(const NodeInfo& info, bool of_softmax)
      : of_softmax_(of_softmax), reduction_(info.node().string_attribute("reduction", "mean")) {
    if (info.node().attribute("ignore_index")) ignored_ = info.node().int_attribute("ignore_index", 0);
  }

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T *scores = arguments.in(0), *weights = arguments.in(2);
      T* loss = arguments.out(0);
      Tensor scratch;
      if (of_softmax_) {
        T* log_probability = arguments.out(1);
        if (!log_probability) {
          scratch = Tensor(element_type_of<T>, shape, run.allocator());
          log_probability = scratch.mutable_data<T>().data();
        }
        if (run.input(0).elements() > 0) log_softmax(run.threads(), scores, log_probability, AxisView(shape, 1));
        scores = log_probability;
      }
      if (loss) compute(run.threads(), scores, Indices(run.input(1)), weights, AxisView(shape, 1), loss);
      arguments.finish();
    });
  }

 private:
  struct Sums {
    double loss = 0, weight = 0;
  };

  // The sums are made of parts of fixed length, so that the number of threads does not change them.
  template <typename T>
  void compute(ThreadPool& pool, const T* scores, const Indices& classes, const T* weights, const AxisView& view,
               T* loss) const {
    constexpr int64_t part_size = 4096;
    const int64_t count = view.outer * view.inner;
    const bool each = reduction_ == "none";
    std::vector<Sums> parts(static_cast<size_t>((count + part_size - 1) / part_size));
    pool.parallel_for(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        Sums sums;
        const int64_t first = part * part_size, stop = std::min(count, first + part_size);
        // A division for each position would take longer than all else.
        const T* image = scores + first / view.inner * view.size * view.inner;
        int64_t place = first % view.inner;
        for (int64_t i = first; i < stop; ++i) {
          const auto [value, weight] = at(i, image + place, classes, weights, view);
          if (each) loss[i] = value;
          sums.loss += value;
          sums.weight += weight;
          if (++place == view.inner) place = 0, image += view.size * view.inner;
        }
        parts[static_cast<size_t>(part)] = sums;
      }
    });
    if (each) return;
    Sums total;
    for (const Sums& sums : parts) total.loss += sums.loss, total.weight += sums.weight;
    *loss = static_cast<T>(reduction_ == "mean" ? total.loss / total.weight : total.loss);
  }

  // The loss at position i of [N, d1, …], whose score of class 0 is given, and its weight in the mean.
  template <typename T>
  std::pair<T, T> at(int64_t i, const T* score, const Indices& classes, const T* weights, const AxisView& view) const {
    const int64_t chosen = classes[i];
    if (chosen == ignored_) return {T(0), T(0)};
    if (chosen < 0 || chosen >= view.size) {
      fail(ErrorCode::invalid_value, "class {} at position {} is not one of the {} classes", chosen, i, view.size);
    }
    const T weight = weights ? weights[chosen] : T(1);
    return {-score[chosen * view.inner] * weight, weight};
  }

  bool of_softmax_;
  std::string reduction_;
  std::optional<int64_t> ignored_;
};

}  // namespace

void cpu_loss(CpuKernels& list) {
  list.add("NegativeLogLikelihoodLoss", [](const NodeInfo& info) { return std::make_unique<Loss>(info, false); });
  list.add("SoftmaxCrossEntropyLoss", [](const NodeInfo& info) { return std::make_unique<Loss>(info, true); });
}

}  // namespace tenon::ops
