#pragma once

#include <algorithm>
#include <string_view>

#include "kernels/half/half.h"
#include "ops/elementwise.h"
#include "provider/kernel.h"

namespace tenon::ops {

// The loops of an operator, and how many elements make a part worth a thread of its own.
struct UnaryFunction {
  std::string_view name;
  const LoopTable<UnaryLoop>* loops;
  int64_t grain;
  UnaryLoop halves = nullptr;  // for float16, where that is better than computing in float
};

// A loop for float16 of a kernel.
template <void (*function)(const uint16_t* x, uint16_t* y, int64_t n)>
void of_halves(const void* x, void* y, int64_t n, const Parameters&) {
  function(static_cast<const uint16_t*>(x), static_cast<uint16_t*>(y), n);
}

// An operator that applies one scalar function to each element of its first input.
class UnaryKernel final : public Kernel {
 public:
  // `halves`: a loop for float16 that is better than computing in float.
  UnaryKernel(const LoopTable<UnaryLoop>& table, int64_t grain, Parameters parameters = {}, UnaryLoop halves = nullptr)
      : table_(table), grain_(grain), parameters_(parameters), halves_(halves) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    const bool is_half = x.type() == ElementType::float16 && y.type() == ElementType::float16;
    if (is_half && !halves_) return run_halves(run.threads(), x, y);
    UnaryLoop loop = is_half ? halves_ : loop_for(table_, x.type());
    const char* from = static_cast<const char*>(x.raw());
    char* to = static_cast<char*>(y.mutable_raw());
    int64_t from_size = bits_of(x.type()) / 8, to_size = bits_of(y.type()) / 8;
    run.threads().parallel_for(x.elements(), grain_, [&](int64_t begin, int64_t end) {
      loop(from + begin * from_size, to + begin * to_size, end - begin, parameters_);
    });
  }
  bool may_overwrite(size_t input) const override { return input == 0; }

 private:
  // As floats, a block at a time.
  void run_halves(ThreadPool& threads, const Tensor& x, Tensor& y) const {
    UnaryLoop loop = loop_for(table_, ElementType::float32);
    const uint16_t* from = &x.data<float16>().data()->bits;
    uint16_t* to = &y.mutable_data<float16>().data()->bits;
    threads.parallel_for(x.elements(), grain_, [&](int64_t begin, int64_t end) {
      constexpr int64_t block = 512;
      float buffer[block];
      for (; begin < end; begin += block) {
        const int64_t size = std::min(block, end - begin);
        kernels::f16_to_f32(from + begin, buffer, size);
        loop(buffer, buffer, size, parameters_);
        kernels::f32_to_f16(buffer, to + begin, size);
      }
    });
  }

  const LoopTable<UnaryLoop>& table_;
  int64_t grain_;
  Parameters parameters_;
  UnaryLoop halves_;
};

}  // namespace tenon::ops
