#include "session/shared_models.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/thread_pool.h"
#include "model_builder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// y = x * w, with a weight that is all `value`.
std::string model(float value) {
  ModelBuilder b;
  Tensor w(ElementType::float32, Shape{256, 256});
  std::ranges::fill(w.mutable_data<float>(), value);
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("rows"), 256});
  b.initializer("w", std::move(w));
  b.node("MatMul", {"x", "w"}, {"y"});
  b.output("y");
  return b.bytes();
}

class SharedModels : public testing::Test {
 protected:
  SharedModels() : path_(fs::temp_directory_path() / ("tenon_shared_models_" + std::to_string(getpid()) + ".onnx")) {
    write(model(1));
  }
  ~SharedModels() override { fs::remove(path_); }

  // As files are to be replaced: by renaming another one.
  void write(const std::string& bytes) const {
    const fs::path other = path_.string() + ".new";
    std::ofstream(other, std::ios::binary) << bytes;
    fs::rename(other, path_);
  }
  std::shared_ptr<const CompiledModel> get(const SessionOptions& options = {}) const {
    return shared_model(path_, options, *ThreadPool::shared());
  }

  fs::path path_;
};

float first_of(const Session& session) {
  Tensor x(ElementType::float32, Shape{1, 256});
  std::ranges::fill(x.mutable_data<float>(), 1.0f);
  return session.run({{"x", x}}).at("y").tensor().data<float>()[0];
}

TEST_F(SharedModels, LiveAsLongAsSomeoneUsesThem) {
  auto first = get();
  EXPECT_EQ(get(), first);
  const std::weak_ptr<const CompiledModel> watched = first;
  first.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(SharedModels, NotWithOtherOptionsOrAnotherFile) {
  const auto first = get();
  SessionOptions level, threads, memory, own;
  level.level = OptimizationLevel::none;
  threads.threads = 2;
  threads.flush_denormals = true;
  threads.parallel_branches = true;
  memory.memory = MemoryUse::low;
  own.custom_operators.push_back(CustomOperator("test", "Never")
                                     .input("x", {ElementType::float32})
                                     .output("y", {ElementType::float32})
                                     .infer([](CustomInference&) {})
                                     .cpu([](CustomRun&) {}));
  EXPECT_NE(get(level), first);
  EXPECT_EQ(get(threads), first);
  EXPECT_NE(get(memory), first);
  EXPECT_NE(get(own), first);
  write(model(2));
  EXPECT_NE(get(), first);
}

TEST_F(SharedModels, SessionsKeepTheFileThatTheyLoaded) {
  const Session before = Session::load(path_);
  write(model(2));
  const Session after = Session::load(path_);
  EXPECT_EQ(first_of(before), 256);
  EXPECT_EQ(first_of(after), 512);
}

TEST_F(SharedModels, SessionsRunSideBySide) {
  SessionOptions two;
  two.threads = 2;
  std::vector<std::thread> users;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i) {
    users.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        Session session = Session::load(path_, i % 2 ? two : SessionOptions());
        right += first_of(session) == 256;
        session.trim();
        right += first_of(session) == 256;
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(right, 160);
}

}  // namespace
}  // namespace tenon
