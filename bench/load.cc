// Loading a model of 1 GB: time and memory, with weights inline (aligned or not) and external.
//
//   bench_load [FOLDER]        (default: the folder for temporary files; needs 2.2 GB there)
//
// Each figure is of a process of its own, the files being in the page cache.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ir/graph.h"
#include "onnx/model_file.h"
#include "tenon/session.h"

namespace {

namespace fs = std::filesystem;
using namespace tenon;

constexpr int tensors = 64;
constexpr int64_t elements = 4 << 20;  // 16 MB each
constexpr double weights = static_cast<double>(tensors) * elements * 4;

// x + w0 + w1 + …, so that every weight is needed.
ir::Model make_model(ir::Constant::Storage storage) {
  ir::Model model;
  model.ir_version = 10;
  model.opset_imports.add("", 20);
  model.graph = std::make_unique<ir::Graph>();
  ir::Graph& graph = *model.graph;
  ir::Value* sum = &graph.add_value("x");
  sum->type = ir::Type::tensor(ElementType::float32, SymbolicShape{Dim(elements)});
  graph.add_input(*sum);
  Tensor content(ElementType::float32, Shape{elements});
  std::memset(content.mutable_raw(), 1, static_cast<size_t>(content.bytes()));
  for (int i = 0; i < tensors; ++i) {
    ir::Value& weight = graph.add_value("w" + std::to_string(i));
    auto constant = std::make_shared<ir::Constant>();
    constant->tensor = content;
    constant->name = weight.name;
    constant->storage = storage;
    graph.set_initializer(weight, ir::ConstantPtr(std::move(constant)));
    ir::Node& add = graph.add_node("Add");
    add.set_input(0, sum);
    add.set_input(1, &weight);
    sum = &graph.add_value("y" + std::to_string(i));
    add.add_output(sum);
  }
  graph.add_output(*sum);
  return model;
}

// Pages of this process that are not in files, at their most.
int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) << 10;
}

template <typename Load>
void measure(const std::string& title, Load&& load) {
  double best = 1e9;
  int64_t memory = 0;
  for (int round = 0; round < 3; ++round) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) std::abort();
    if (fork() == 0) {
      int64_t before = peak_bytes();
      auto start = std::chrono::steady_clock::now();
      load();
      double result[2] = {std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
                          static_cast<double>(peak_bytes() - before)};
      if (write(pipe_ends[1], result, sizeof(result)) < 0) std::abort();
      _exit(0);
    }
    close(pipe_ends[1]);
    double result[2] = {};
    if (read(pipe_ends[0], result, sizeof(result)) != sizeof(result)) std::abort();
    wait(nullptr);
    close(pipe_ends[0]);
    best = std::min(best, result[0]);
    memory = static_cast<int64_t>(result[1]);
  }
  fmt::print("{:<44} {:>7.1f} ms   peak +{:.3f} of the weights\n", title, best, static_cast<double>(memory) / weights);
}

}  // namespace

int main(int argc, char** argv) {
  fs::path folder = fs::path(argc > 1 ? argv[1] : fs::temp_directory_path()) / "tenon_bench_load";
  fs::create_directories(folder);
  fs::path external = folder / "external.onnx", inline_ = folder / "inline.onnx";
  if (fork() == 0) {  // so that making the models does not count
    onnx::save_model(make_model(ir::Constant::Storage::external), external);
    onnx::save_model(make_model(ir::Constant::Storage::raw), inline_);
    _exit(0);
  }
  wait(nullptr);
  measure("read, external weights", [&] { onnx::load_model(external); });
  measure("read, inline weights (mostly misaligned)", [&] { onnx::load_model(inline_); });
  measure("session, external weights", [&] { Session::load(external); });
  measure("session, inline weights (mostly misaligned)", [&] { Session::load(inline_); });
  fs::remove_all(folder);
}
