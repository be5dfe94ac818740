// Runs that return before the GPU is done, on the stand-in for NVIDIA's libraries (tests/cuda), which here does nothing
// before somebody waits for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cuda/gpu.h"
#include "model_builder.h"
#include "tenon/device.h"
#include "tenon/session.h"

namespace tenon {
namespace {

using Numbers = std::vector<float>;

class EarlyRuns : public testing::Test {
 protected:
  EarlyRuns() {
    setenv("TENON_EMULATED_ORDER", "late", 1);
    gpu_ = cuda::Gpu::open();
    gpu_->check(gpu_->api().cuStreamCreate(&stream_, 1), "cuStreamCreate");
    const CallersStream callers(stream_);
    session_.emplace(load());
  }
  ~EarlyRuns() override {
    session_.reset();
    gpu_->api().cuStreamDestroy_v2(stream_);
    unsetenv("TENON_EMULATED_ORDER");
  }

  // y = 1 - |x|, node by node.
  static Session load(std::vector<std::string> providers = {"cuda", "cpu"}) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
    b.initializer("one", Tensor(Shape{1}, {1.0f}));
    b.node("Abs", {"x"}, {"a"});
    b.node("Neg", {"a"}, {"b"});
    b.node("Add", {"b", "one"}, {"y"});
    b.output("y");
    SessionOptions options;
    options.providers = std::move(providers);
    options.level = OptimizationLevel::none;
    return b.session(options);
  }

  static Tensor on_gpu(Numbers numbers) {
    Tensor tensor(ElementType::float32, Shape{static_cast<int64_t>(numbers.size())});
    std::ranges::copy(numbers, tensor.mutable_data<float>().begin());
    return on_device(tensor);
  }

  NamedValues run_early(const Tensor& x, Tensor y) const {
    RunOptions options;
    options.wait = false;
    options.destinations["y"] = std::move(y);
    return session_->run({{"x", x}}, options);
  }

  // What the memory of the stand-in's GPU holds at this moment.
  static Numbers now(const Tensor& tensor) {
    const auto* data = static_cast<const float*>(tensor.raw());
    return {data, data + tensor.shape().elements()};
  }

  std::shared_ptr<cuda::Gpu> gpu_;
  void* stream_ = nullptr;
  std::optional<Session> session_;
};

TEST_F(EarlyRuns, AreDoneWhenTheStreamIs) {
  const Tensor x = on_gpu({1, -2}), y = on_gpu({7, 7}), other = on_gpu({8, 8});
  for (int run = 0; run < 3; ++run) run_early(x, y);  // the last one is a recording
  wait_for_cuda_stream(stream_);
  EXPECT_EQ(now(y), (Numbers{0, -1}));
  const cuda::CallCounts before = gpu_->counts();
  run_early(on_gpu({3, 4}), other);
  EXPECT_EQ(gpu_->counts().waits, before.waits);
  EXPECT_EQ(now(other), (Numbers{8, 8})) << "nobody has waited";
  wait_for_cuda_stream(stream_);
  EXPECT_EQ(now(other), (Numbers{-2, -3}));
}

// They share the memory for what is in between: the stream keeps them apart. What comes from the host goes up in
// another stream if it is large, and must not come too early.
TEST_F(EarlyRuns, ComeOneAfterTheOther) {
  for (const char* order : {"late", "late-kernels"}) {
    setenv("TENON_EMULATED_ORDER", order, 1);
    for (const size_t n : {size_t{2}, size_t{100'000}}) {
      std::vector<Tensor> outputs;
      for (int run = 0; run < 8; ++run) {
        outputs.push_back(on_gpu(Numbers(n, 7)));
        run_early(on_gpu(Numbers(n, static_cast<float>(run))), outputs.back());
        if (run % 3 != 2) continue;
        Tensor x(ElementType::float32, Shape{static_cast<int64_t>(n)});
        std::ranges::fill(x.mutable_data<float>(), 0.25f);
        const NamedValues results = session_->run({{"x", x}});
        EXPECT_EQ(results.at("y").tensor().data<float>()[n - 1], 0.75f) << order << ", " << n << ", run " << run;
      }
      wait_for_cuda_stream(stream_);
      for (size_t run = 0; run < outputs.size(); ++run)
        EXPECT_EQ(now(outputs[run]), Numbers(n, 1 - static_cast<float>(run))) << order << ", " << n << ", run " << run;
    }
  }
}

TEST_F(EarlyRuns, KeepTheMemoryThatTheyUse) {
  Tensor x = on_gpu({1, 2}), y = on_gpu({7, 7});
  const std::weak_ptr<void> input = x.owner(), output = y.owner();
  run_early(x, y);
  x = y = Tensor();
  EXPECT_FALSE(input.expired() || output.expired());
  wait_for_cuda_stream(stream_);
  // The next run finds out.
  run_early(on_gpu({1, 2}), on_gpu({7, 7}));
  EXPECT_TRUE(input.expired() && output.expired());
}

TEST_F(EarlyRuns, EndBeforeTheirSessionDoes) {
  const Tensor x = on_gpu({1, 2}), y = on_gpu({7, 7});
  for (int run = 0; run < 3; ++run) run_early(x, y);
  session_.reset();
  EXPECT_EQ(now(y), (Numbers{0, -1}));
}

TEST_F(EarlyRuns, AreWaitedForByWhoReadsTheirOutputsOnTheHost) {
  const NamedValues results = run_early(on_gpu({1, 2}), made_on_device());
  const Tensor& y = results.at("y").tensor();
  EXPECT_EQ(memory_of(y), "cuda");
  const Tensor host = on_host(y);
  EXPECT_EQ(host.data<float>()[1], -1);
  Tensor copied(ElementType::float32, Shape{2});
  const NamedValues others = run_early(on_gpu({5, 6}), made_on_device());
  copy_elements(others.at("y").tensor(), copied);
  EXPECT_EQ(copied.data<float>()[1], -5);
}

TEST_F(EarlyRuns, AreNoneWhereSomethingIsOnTheHost) {
  const Tensor x(Shape{2}, {1.0f, 2.0f}), y = on_gpu({7, 7});
  run_early(x, y);
  EXPECT_EQ(now(y), (Numbers{0, -1})) << "the input is on the host";
  RunOptions options;
  options.wait = false;
  const NamedValues results = session_->run({{"x", on_gpu({3, 4})}}, options);
  EXPECT_EQ(results.at("y").tensor().data<float>()[0], -2) << "the output is on the host";
}

TEST_F(EarlyRuns, NeedAStreamOfTheCallers) {
  RunOptions options;
  options.wait = false;
  for (const std::vector<std::string>& providers : {std::vector<std::string>{"cuda", "cpu"}, {"cpu"}}) {
    const Session session = load(providers);
    EXPECT_EQ(error_of([&] {
                session.run({{"x", Tensor(Shape{1}, {1.0f})}}, options);
              }),
              "invalid-argument: a run cannot return early: the session has no stream of the caller's\n"
              "  hint: make the session with one: tenon::CallersStream, tenon.load(stream=…), user_compute_stream");
  }
}

}  // namespace
}  // namespace tenon
