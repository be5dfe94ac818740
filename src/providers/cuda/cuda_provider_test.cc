// The provider on the stand-in for NVIDIA's libraries (tests/cuda), which runs kernels on the CPU.
#include "providers/cuda/cuda_provider.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "model_builder.h"
#include "tenon/device.h"
#include "tenon/session.h"

namespace tenon {
namespace {

SessionOptions on_cuda(std::vector<std::string> providers = {"cuda", "cpu"}) {
  SessionOptions options;
  options.providers = std::move(providers);
  return options;
}

// y = softplus(x @ w + b), with a batch that is not known.
ModelBuilder network() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 2});
  b.initializer("w", Tensor(Shape{2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}));
  b.initializer("b", Tensor(Shape{3}, {0.5f, -0.5f, -30.0f}));
  b.node("MatMul", {"x", "w"}, {"products"}, "multiply");
  b.node("Add", {"products", "b"}, {"sums"}, "add");
  b.node("Softplus", {"sums"}, {"y"}, "activate");
  b.output("y");
  return b;
}

const Tensor rows(Shape{2, 2}, {1.0f, 2.0f, -1.0f, 0.25f});

std::vector<float> numbers(const Value& value) {
  const auto data = value.tensor().data<float>();
  return {data.begin(), data.end()};
}

void expect_near(const Value& actual, const Value& expected) {
  const std::vector<float> a = numbers(actual), b = numbers(expected);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5f) << i;
}

Value expected(const Tensor& x) { return network().session().run({{"x", x}}).at("y"); }

TEST(Cuda, RunsAModelAndSaysSo) {
  const Session session = network().session(on_cuda());
  for (const NodePlacement& node : session.placement()) EXPECT_EQ(node.provider, "cuda") << node.node;
  ASSERT_EQ(session.copies().size(), 2u);
  EXPECT_EQ(session.copies()[0].value, "x");
  EXPECT_EQ(session.copies()[0].to, "cuda");
  EXPECT_EQ(session.copies()[1].value, "y");
  EXPECT_EQ(session.copies()[1].from, "cuda");
  expect_near(session.run({{"x", rows}}).at("y"), expected(rows));
}

TEST(Cuda, SaysWhatIsNotOnTheGpu) {
  ModelBuilder b = network();
  b.input("text", ElementType::string, SymbolicShape{Dim(2)});
  b.node("StringConcat", {"text", "text"}, {"twice"}, "join");
  b.output("twice");
  const Session session = b.session(on_cuda());
  for (const NodePlacement& node : session.placement()) {
    if (node.op_type != "StringConcat") continue;
    EXPECT_EQ(node.provider, "cpu");
    ASSERT_EQ(node.declined.size(), 1u);
    EXPECT_EQ(node.declined[0].first, "cuda");
  }
  // Without the CPU among the providers it is an error that names the node.
  const std::string error = error_of([&] { b.session(on_cuda({"cuda"})); });
  EXPECT_NE(error.find("join"), std::string::npos) << error;
  EXPECT_NE(error.find("no CUDA kernel for StringConcat"), std::string::npos) << error;
}

TEST(Cuda, ComputesSizesOnTheHostWithoutBeingAsked) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), Dim::symbol("m"), 2});
  b.node("Shape", {"x"}, {"shape"});
  b.initializer("first", Tensor(Shape{1}, {int64_t{0}}));
  b.initializer("rest", Tensor(Shape{1}, {int64_t{-1}}));
  b.node("Gather", {"shape", "first"}, {"n"});
  b.node("Concat", {"n", "rest"}, {"target"}).set_attribute({"axis", int64_t{0}});
  b.node("Exp", {"x"}, {"e"});
  b.node("Reshape", {"e", "target"}, {"y"});
  b.output("y");
  const Session session = b.session(on_cuda({"cuda"}));
  const Tensor x(Shape{2, 2, 2}, {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f});
  const Value y = session.run({{"x", x}}).at("y");
  EXPECT_EQ(y.tensor().shape(), (Shape{2, 4}));
  EXPECT_NEAR(y.tensor().data<float>()[7], std::exp(7.0f), 1e-2f);
}

TEST(Cuda, DoesTheLeastFromTheThirdRunOn) {
  const Session session = network().session(on_cuda());
  const auto gpu = cuda::Gpu::open();
  for (int i = 0; i < 2; ++i) session.run({{"x", rows}});
  const cuda::CallCounts before = gpu->counts();
  const Value y = session.run({{"x", rows}}).at("y");
  const cuda::CallCounts after = gpu->counts();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.compilations, before.compilations);
  EXPECT_EQ(after.launches, before.launches);
  EXPECT_EQ(after.replays, before.replays + 1);
  EXPECT_EQ(after.uploads, before.uploads + 1);
  EXPECT_EQ(after.downloads, before.downloads + 1);
  EXPECT_EQ(after.waits, before.waits + 1);
  expect_near(y, expected(rows));
  // Other numbers, through the same recording; other shapes, through another plan.
  const Tensor others(Shape{2, 2}, {0.0f, 0.5f, 3.0f, -2.0f}), one(Shape{1, 2}, {0.5f, 0.75f});
  expect_near(session.run({{"x", others}}).at("y"), expected(others));
  expect_near(session.run({{"x", one}}).at("y"), expected(one));
}

// Of sizes that only a run shows, which may never come again.
TEST(Cuda, TriesWaysOfAProductOnceItsSizesComeOften) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{4, 4}).input("wanted", ElementType::boolean, SymbolicShape{4});
  b.initializer("w", Tensor(Shape{4, 4}, {0.5f, 1.0f, 0.0f, 0.0f, 0.5f, 1.0f, 0.0f, 0.0f, 0.5f, 1.0f, 0.0f, 1.0f, 0.5f,
                                          1.0f, 1.0f, 0.0f}));
  b.node("Compress", {"x", "wanted"}, {"kept"}).set_attribute({"axis", int64_t{0}});
  b.node("MatMul", {"kept", "w"}, {"y"});
  b.output("y");
  const Session session = b.session(on_cuda());
  const auto gpu = cuda::Gpu::open();
  const Tensor x(Shape{4, 4},
                 {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 1.0f, 1.0f, 1.0f, 1.0f, 2.0f, 2.0f, 2.0f, 2.0f});
  const Tensor wanted(Shape{4}, {true, false, false, true});
  std::vector<int64_t> replays;
  for (int i = 0; i < 6; ++i) {
    const int64_t before = gpu->counts().replays;
    const Value y = session.run({{"x", x}, {"wanted", wanted}}).at("y");
    replays.push_back(gpu->counts().replays - before);
    EXPECT_EQ(numbers(y), (std::vector<float>{5, 10, 4, 3, 4, 8, 2, 2}));
  }
  EXPECT_EQ(replays[1], replays[2]);
  EXPECT_GT(replays[3], replays[2]) << "a trial";
  EXPECT_EQ(replays[4], replays[2]) << "whose result is known";
  EXPECT_EQ(replays[5], replays[2]);
}

TEST(Cuda, RecordedKernelsAreLaunchedEarly) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 3, 4});
  b.initializer("last", Tensor(Shape{1}, {int64_t{2}})).initializer("w", Tensor(Shape{3, 1}, {1.0f, 2.0f, 3.0f}));
  b.node("Softmax", {"x"}, {"shares"}).set_attribute({"axis", int64_t{1}});
  b.node("ReduceMax", {"shares", "last"}, {"largest"}).set_attribute({"keepdims", int64_t{0}});
  b.node("MatMul", {"largest", "w"}, {"products"});
  b.node("Softplus", {"products"}, {"y"});
  b.output("y");
  Tensor x(ElementType::float32, Shape{2, 3, 4});
  for (size_t i = 0; i < 24; ++i) x.mutable_data<float>()[i] = static_cast<float>(i * 7 % 5);
  const Value expected = b.session().run({{"x", x}}).at("y");
  const Session session = b.session(on_cuda({"cuda"}));
  const auto gpu = cuda::Gpu::open();
  const int64_t before = gpu->counts().early_launches;
  expect_near(session.run({{"x", x}}).at("y"), expected);
  EXPECT_EQ(gpu->counts().early_launches, before) << "only what is recorded does";
  for (int i = 0; i < 2; ++i) expect_near(session.run({{"x", x}}).at("y"), expected);
  EXPECT_EQ(gpu->counts().early_launches, before + 3) << "all but the product, which a library multiplies";
}

TEST(Cuda, TakesAndGivesTensorsOnTheGpu) {
  const Session session = network().session(on_cuda());
  const Tensor x = on_device(rows), y = on_device(Tensor(ElementType::float32, Shape{2, 3}));
  EXPECT_EQ(memory_of(x), "cuda");
  EXPECT_EQ(memory_of(rows), "host");
  RunOptions options;
  options.destinations["y"] = y;
  const auto gpu = cuda::Gpu::open();
  const cuda::CallCounts before = gpu->counts();
  const Value result = session.run({{"x", x}}, options).at("y");
  EXPECT_EQ(gpu->counts().uploads, before.uploads);
  EXPECT_EQ(gpu->counts().downloads, before.downloads);
  EXPECT_EQ(result.tensor().raw(), y.raw());
  expect_near(on_host(y), expected(rows));
  // A session of the CPU takes it too.
  expect_near(network().session().run({{"x", x}}).at("y"), expected(rows));
}

// The stand-in refuses work for a GPU that is not the thread's.
TEST(Cuda, SeveralGpusHaveTheirOwnSessions) {
  auto second = std::make_unique<Session>(network().session(on_cuda({"cuda:1", "cpu"})));
  const Session first = network().session(on_cuda());
  for (const NodePlacement& node : second->placement()) EXPECT_EQ(node.provider, "cuda:1") << node.node;
  EXPECT_EQ(second->copies()[0].to, "cuda:1");
  for (int i = 0; i < 3; ++i) {
    expect_near(first.run({{"x", rows}}).at("y"), expected(rows));
    expect_near(second->run({{"x", rows}}).at("y"), expected(rows));
  }
  // What is on the other GPU is brought there by those who want it.
  const Tensor x = on_device(rows), there = on_device(x, "cuda:1");
  EXPECT_EQ(memory_of(there), "cuda:1");
  EXPECT_NE(error_of([&] {
              second->run({{"x", x}});
            }).find("it is in the memory of cuda, the model runs on cuda:1"),
            std::string::npos);
  expect_near(second->run({{"x", there}}).at("y"), expected(rows));
  // One that ends, here or on another thread, leaves the other one alone.
  for (const bool ends_here : {true, false}) {
    expect_near(first.run({{"x", rows}}).at("y"), expected(rows));
    if (ends_here)
      second.reset();
    else
      std::thread([&] { second.reset(); }).join();
    expect_near(first.run({{"x", rows}}).at("y"), expected(rows));
    second = std::make_unique<Session>(network().session(on_cuda({"cuda:1", "cpu"})));
    expect_near(second->run({{"x", rows}}).at("y"), expected(rows));
  }
  EXPECT_EQ(cuda::Gpu::list().size(), 2u);
}

TEST(Cuda, GpusThatAreNotThere) {
  EXPECT_EQ(error_of([] { network().session(on_cuda({"cuda:2"})); }),
            "provider-unavailable: there is no GPU 2: there are 2, and numbers begin with 0\n"
            "  hint: `tenon doctor` lists them; CUDA_VISIBLE_DEVICES may hide some");
  EXPECT_EQ(error_of([] { network().session(on_cuda({"cuda:first"})); }),
            "invalid-argument: 'cuda:first' is no provider: the number of a GPU comes after the colon, as in 'cuda:1'");
  EXPECT_EQ(error_of([] {
              network().session(on_cuda({"cuda", "cuda:1", "cpu"}));
            }),
            "invalid-argument: a session computes on one device, and both 'cuda' and 'cuda:1' are asked for\n"
            "  hint: make a session for each");
}

TEST(Cuda, DestinationsOnAnotherGpuAreErrors) {
  RunOptions options;
  options.destinations["y"] = on_device(Tensor(ElementType::float32, Shape{2, 3}));
  const Session session = network().session(on_cuda({"cuda:1"}));
  const std::string error = error_of([&] { session.run({{"x", rows}}, options); });
  EXPECT_NE(error.find("it is in the memory of cuda, the model runs on cuda:1"), std::string::npos) << error;
  expect_near(session.run({{"x", rows}}).at("y"), expected(rows));
  // What the CPU made is brought there.
  network().session().run({{"x", rows}}, options);
  expect_near(on_host(options.destinations["y"]), expected(rows));
}

TEST(Cuda, WritesOutputsThatTheHostMakesOrReadsToTheDeviceWhenTheyAreDone) {
  // The text is made of y on the host, so that y cannot be on the device alone.
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 2});
  b.initializer("c", Tensor(Shape{2}, {7.0f, 8.0f}));
  b.node("Relu", {"x"}, {"y"});
  b.node("Cast", {"y"}, {"text"}).set_attribute({"to", int64_t{8}});
  b.node("Identity", {"c"}, {"kept"});
  b.node("Neg", {"x"}, {"z"});
  for (const char* name : {"y", "text", "kept", "z"}) b.output(name);
  const Session session = b.session(on_cuda());
  const Tensor x = on_device(rows);
  const std::shared_ptr<cuda::Gpu> gpu = cuda::Gpu::open();
  RunOptions options;
  options.destinations["y"] = on_device(Tensor(ElementType::float32, Shape{2, 2}));
  options.destinations["kept"] = on_device(Tensor(ElementType::float32, Shape{2}));
  options.destinations["z"] = made_on_device();
  for (int i = 0; i < 3; ++i) {
    const cuda::CallCounts before = gpu->counts();
    NamedValues results = session.run({{"x", x}}, options);
    EXPECT_EQ(gpu->counts().uploads, before.uploads + 2);
    EXPECT_EQ(gpu->counts().downloads, before.downloads + 1);
    EXPECT_EQ(results.at("text").tensor().data<std::string>()[3], "0.25");
    EXPECT_EQ(results.at("y").tensor().raw(), options.destinations["y"].raw());
    for (const char* name : {"y", "kept", "z"}) {
      ASSERT_EQ(memory_of(results.at(name).tensor()), "cuda") << name;
      results.at(name) = on_host(results.at(name).tensor());
    }
    EXPECT_EQ(numbers(results.at("y")), (std::vector<float>{1, 2, 0, 0.25f}));
    EXPECT_EQ(numbers(results.at("kept")), (std::vector<float>{7, 8}));
    EXPECT_EQ(numbers(results.at("z")), (std::vector<float>{-1, -2, 1, -0.25f}));
  }
}

TEST(Cuda, GoesOnAfterItsMemoryWasNotEnough) {
  const Session session = network().session(on_cuda());
  session.run({{"x", rows}});
  const int64_t n = 1 << 16;
  const Tensor many(ElementType::float32, Shape{n, 2});
  cuda::Gpu::open()->trim();
  setenv("TENON_EMULATED_MEMORY", "100000", 1);
  ErrorCode code = ErrorCode::internal;
  std::string text;
  try {
    session.run({{"x", many}});
  } catch (const Error& error) {
    code = error.code();
    text = error.what();
  }
  unsetenv("TENON_EMULATED_MEMORY");
  EXPECT_EQ(code, ErrorCode::out_of_memory) << text;
  expect_near(session.run({{"x", rows}}).at("y"), expected(rows));
}

TEST(Cuda, RunsTheBodyOfALoop) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(2)});
  b.initializer("times", Tensor::scalar(int64_t{3}));
  auto body = std::make_unique<ir::Graph>();
  for (const char* name : {"i", "go", "state"}) body->add_input(body->add_value(name));
  body->inputs()[0]->type = ir::Type::tensor(ElementType::int64, SymbolicShape{});
  body->inputs()[1]->type = ir::Type::tensor(ElementType::boolean, SymbolicShape{});
  body->inputs()[2]->type = ir::Type::tensor(ElementType::float32, SymbolicShape{Dim(2)});
  ir::Node& add = body->add_node("Add");
  add.add_input(body->inputs()[2]);
  add.add_input(&b.value("x"));
  ir::Value& next = body->add_value("next");
  add.add_output(&next);
  body->add_output(*body->inputs()[1]);
  body->add_output(next);
  b.node("Loop", {"times", "", "x"}, {"y"}).set_attribute({"body", std::move(body)});
  b.output("y");
  const Session session = b.session(on_cuda({"cuda"}));
  const Value y = session.run({{"x", Tensor(Shape{2}, {1.0f, 2.0f})}}).at("y");
  EXPECT_EQ(numbers(y), (std::vector<float>{4, 8}));
}

// y = -x, and below it `times` times -exp(x).
Session loop_of_rows(int64_t times) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1), Dim(3)});
  b.initializer("times", Tensor::scalar(times));
  auto body = std::make_unique<ir::Graph>();
  const auto input = [&](const char* name, ElementType type, std::optional<SymbolicShape> shape) -> ir::Value& {
    ir::Value& value = body->add_value(name);
    value.type = ir::Type::tensor(type, std::move(shape));
    body->add_input(value);
    return value;
  };
  input("i", ElementType::int64, SymbolicShape{});
  ir::Value &go = input("go", ElementType::boolean, SymbolicShape{}),
            &state = input("state", ElementType::float32, std::nullopt);
  const auto node = [&](const char* op, std::initializer_list<ir::Value*> inputs) -> ir::Node& {
    ir::Node& made = body->add_node(op);
    for (ir::Value* value : inputs) made.add_input(value);
    made.add_output(&body->add_value(op));
    return made;
  };
  ir::Value& more = *node("Exp", {&b.value("x")}).output(0);
  ir::Node& next = node("Concat", {&state, &more});
  next.set_attribute({"axis", int64_t{0}});
  body->add_output(go);
  body->add_output(*next.output(0));
  b.node("Loop", {"times", "", "x"}, {"rows"}).set_attribute({"body", std::move(body)});
  b.node("Neg", {"rows"}, {"y"});
  b.output("y");
  SessionOptions options = on_cuda();
  options.level = OptimizationLevel::none;
  return b.session(options);
}

TEST(Cuda, KeepsWhatComesBackToABody) {
  const auto gpu = cuda::Gpu::open();
  const Tensor x(Shape{1, 3}, {0.0f, 1.0f, -1.0f});
  cuda::CallCounts costs[2];
  for (const int64_t times : {1, 5}) {
    const Session session = loop_of_rows(times);
    for (int run = 0; run < 3; ++run) {
      const cuda::CallCounts before = gpu->counts();
      const NamedValues results = session.run({{"x", x}});
      const std::vector<float> y = numbers(results.at("y"));
      ASSERT_EQ(y.size(), static_cast<size_t>(3 * (times + 1)));
      for (size_t i = 0; i < y.size(); ++i) {
        const float number = x.data<float>()[i % 3];
        EXPECT_FLOAT_EQ(y[i], i < 3 ? -number : -std::exp(number)) << times << " times, element " << i;
      }
      const cuda::CallCounts after = gpu->counts();
      costs[times > 1].uploads = after.uploads - before.uploads;
      costs[times > 1].downloads = after.downloads - before.downloads;
    }
  }
  EXPECT_EQ(costs[0].uploads, costs[1].uploads);
  EXPECT_EQ(costs[0].downloads, costs[1].downloads);
  EXPECT_EQ(costs[1].downloads, 1);
}

TEST(Cuda, IsMissedWithEveryPathThatWasTried) {
  cuda::Libraries none;
  none.reports[0] = {
      "CUDA driver", "runs kernels", false, {{"libcuda.so.1", "cannot open shared object file"}}, "install it"};
  for (int i = 1; i < 4; ++i) none.reports[i].is_found = true;
  EXPECT_EQ(
      cuda::what_is_missing(none),
      "CUDA driver, which runs kernels, is not there (tried libcuda.so.1: cannot open shared object file); install it");
}

}  // namespace
}  // namespace tenon
