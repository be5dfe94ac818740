#include "tools/report/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/thread_pool.h"
#include "ir/graph.h"
#include "ops/operator.h"
#include "session/session_of_model.h"

namespace tenon::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Many short rounds, so that what else the machine does leaves some of them alone.
template <typename Work>
double best_seconds(const Work& work) {
  constexpr double enough = 0.3;
  double best = enough, all = 0;
  for (int rounds = 0; all < enough || rounds < 3; ++rounds) {
    const Clock::time_point start = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = rounds == 0 ? seconds : std::min(best, seconds);
    all += seconds;
  }
  return best;
}

Tensor ones(const Shape& shape) {
  Tensor tensor(ElementType::float32, shape);
  std::ranges::fill(tensor.mutable_data<float>(), 1.0f);
  return tensor;
}

double product_gflops(int threads) {
  constexpr int64_t n = 384;
  auto model = std::make_unique<ir::Model>();
  model->graph = std::make_unique<ir::Graph>();
  model->ir_version = 8;
  model->opset_imports.add("", ops::newest_opset);
  ir::Value& input = model->graph->add_value("x");
  input.type = ir::Type::tensor(ElementType::float32, SymbolicShape{n, n});
  model->graph->add_input(input);
  ir::Node& product = model->graph->add_node("MatMul");
  product.add_input(&input);
  product.add_input(&model->graph->add_constant(ones({n, n}), "w"));
  ir::Value& output = model->graph->add_value("y");
  product.add_output(&output);
  model->graph->add_output(output);
  SessionOptions options;
  options.threads = threads;
  const Session session = session_of(std::move(model), options);
  const NamedValues inputs = {{"x", ones({n, n})}};
  return 2e-9 * n * n * n / best_seconds([&] { session.run(inputs); });
}

double copy_gbs(int threads) {
  constexpr size_t bytes = size_t{64} << 20;
  const std::unique_ptr<std::byte[]> from(new std::byte[bytes]()), to(new std::byte[bytes]());
  ThreadPool pool(threads);
  return 2e-9 * bytes / best_seconds([&] {
           pool.parallel_for(bytes, 1 << 20, [&](int64_t begin, int64_t end) {
             std::memcpy(to.get() + begin, from.get() + begin, static_cast<size_t>(end - begin));
           });
         });
}

}  // namespace

Peaks measure_peaks(int threads) { return {threads, product_gflops(threads), copy_gbs(threads)}; }

}  // namespace tenon::tools
