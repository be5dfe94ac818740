#include <algorithm>

#include "base/rounding.h"
#include "ops/cpu_support/indices.h"
#include "ops/cpu_support/strided_copy.h"
#include "ops/scatter/cpu_reduction.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

constexpr int64_t grain_elements = 4096, places_at_once = 256;

constexpr int64_t rows_ahead = 8;

// Starts to bring the first lines of a row into the cache.
void fetch(const std::byte* row, int64_t bytes) {
  constexpr int64_t line = 64, most = 512;
  for (int64_t at = 0; at < std::min(bytes, most); at += line) __builtin_prefetch(row + at, 1);
}

void copy_all(ThreadPool& threads, const Tensor& from, Tensor& to) {
  int64_t one = 1, count = from.elements();
  strided_copy(threads, from.type(), from.raw(), {&one, 1}, to.mutable_raw(), {&one, 1}, {&count, 1});
}

class ScatterElements final : public Kernel {
 public:
  explicit ScatterElements(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", 0)), reduction_(info.node().string_attribute("reduction", "none")) {}

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &updates = run.input(2);
    Combine combine = combine_for(x.type(), reduction_);
    Tensor& y = run.output(0);
    copy_all(run.threads(), x, y);
    if (updates.elements() == 0) return;
    int rank = x.rank(), axis = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    auto strides = dense_strides(x.shape());
    Indices indices(run.input(1));
    int64_t length = updates.dim(axis), size = x.dim(axis), stride = strides[static_cast<size_t>(axis)];
    int64_t inner = updates.shape().elements(axis + 1, rank), lines = updates.shape().elements(0, axis) * inner;
    // Where line number `line` along the axis begins in the output.
    const auto line_start = [&](int64_t line) {
      int64_t to = 0;
      for (int a = rank - 1; a >= 0; --a) {
        if (a == axis) continue;
        to += line % updates.dim(a) * strides[static_cast<size_t>(a)];
        line /= updates.dim(a);
      }
      return to;
    };
    // Lines along the axis never meet, so each is one thread's and keeps the order of its updates. Where neighbouring
    // lines begin side by side, they are walked through together.
    const bool side_by_side = inner == x.shape().elements(axis + 1, rank);
    run.threads().parallel_for(lines, std::max<int64_t>(1, grain_elements / length), [&](int64_t begin, int64_t end) {
      int64_t places[places_at_once];
      while (begin < end) {
        const int64_t from = begin / inner * length * inner + begin % inner, to = line_start(begin);
        const int64_t width = side_by_side ? std::min({end - begin, inner - begin % inner, places_at_once}) : 1;
        if (width == 1) {
          for (int64_t k = 0; k < length; k += places_at_once) {
            const int64_t count = std::min(places_at_once, length - k), first = from + k * inner;
            indices.read(first, inner, count, size, axis, places);
            for (int64_t i = 0; i < count; ++i) places[i] = to + places[i] * stride;
            combine.at(y.mutable_raw(), places, element_at(updates, first), inner, count);
          }
        } else {
          for (int64_t k = 0; k < length; ++k) {
            const int64_t first = from + k * inner;
            indices.read(first, 1, width, size, axis, places);
            for (int64_t i = 0; i < width; ++i) places[i] = to + i + places[i] * stride;
            combine.at(y.mutable_raw(), places, element_at(updates, first), 1, width);
          }
        }
        begin += width;
      }
    });
  }

 private:
  int64_t axis_;
  std::string reduction_;
};

class ScatterND final : public Kernel {
 public:
  explicit ScatterND(const NodeInfo& info) : reduction_(info.node().string_attribute("reduction", "none")) {}

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &picks = run.input(1), &updates = run.input(2);
    Combine combine = combine_for(x.type(), reduction_);
    Tensor& y = run.output(0);
    copy_all(run.threads(), x, y);
    if (updates.elements() == 0) return;
    int depth = static_cast<int>(picks.dim(picks.rank() - 1));
    auto strides = dense_strides(x.shape());
    int64_t inner = x.shape().elements(depth, x.rank()), count = updates.elements() / inner;
    Indices indices(picks);
    std::vector<int64_t> places(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = 0;
      for (int k = 0; k < depth; ++k) at += indices.at(i * depth + k, x.dim(k), k) * strides[static_cast<size_t>(k)];
      places[static_cast<size_t>(i)] = at;
    }
    if (inner == 1) return combine.at(y.mutable_raw(), places.data(), updates.raw(), 1, count);
    // Threads share the blocks' insides, so that updates of one place keep their order; each has a part of its own, as
    // small ones would share cache lines.
    const int64_t part = std::max<int64_t>({16, grain_elements / count, divide_up(inner, run.threads().size())});
    const int64_t bytes = bits_of(y.type()) / 8;
    std::byte* to = static_cast<std::byte*>(y.mutable_raw());
    const std::byte* from = static_cast<const std::byte*>(updates.raw());
    run.threads().parallel_for(inner, part, [&](int64_t begin, int64_t end) {
      const int64_t size = (end - begin) * bytes;
      for (int64_t i = 0; i < count; ++i) {
        if (i + rows_ahead < count) fetch(to + (places[static_cast<size_t>(i + rows_ahead)] + begin) * bytes, size);
        combine.row(to + (places[static_cast<size_t>(i)] + begin) * bytes, from + (i * inner + begin) * bytes,
                    end - begin);
      }
    });
  }

 private:
  std::string reduction_;
};

class TensorScatter final : public Kernel {
 public:
  explicit TensorScatter(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", -2)),
        circular_(info.node().string_attribute("mode", "linear") == "circular") {}

  void run(KernelRun& run) const override {
    const Tensor& cache = run.input(0);
    Tensor& y = run.output(0);
    if (bits_of(cache.type()) >= 8) return write(run, cache, run.input(1), y);
    Tensor codes(ElementType::uint8, cache.shape(), run.allocator());
    write(run, unpack_codes(cache, run.allocator()), unpack_codes(run.input(1), run.allocator()), codes);
    pack_codes(codes, y);
  }

 private:
  void write(KernelRun& run, const Tensor& cache, const Tensor& update, Tensor& y) const {
    copy_all(run.threads(), cache, y);
    int axis = static_cast<int>(axis_ < 0 ? axis_ + cache.rank() : axis_);
    int64_t length = update.dim(axis), room = cache.dim(axis), inner = cache.shape().elements(axis + 1, cache.rank());
    int64_t batches = cache.dim(0), outer = cache.shape().elements(1, axis);
    if (update.elements() == 0) return;
    for (int64_t batch = 0; batch < batches; ++batch) {
      int64_t first = run.has_input(2) ? run.data<int64_t>(2)[static_cast<size_t>(batch)] : 0;
      if (first < 0 || (!circular_ && first > room - length)) {
        fail(ErrorCode::invalid_value, "write index {} of batch {} and length {} do not fit in a cache of {}", first,
             batch, length, room);
      }
      first %= room;
      int64_t before_wrap = std::min(length, room - first);
      for (int64_t o = batch * outer; o < (batch + 1) * outer; ++o) {
        copy_elements(y.type(), update.raw(), o * length * inner, y.mutable_raw(), (o * room + first) * inner,
                      before_wrap * inner);
        copy_elements(y.type(), update.raw(), (o * length + before_wrap) * inner, y.mutable_raw(), o * room * inner,
                      (length - before_wrap) * inner);
      }
    }
  }

  int64_t axis_;
  bool circular_;
};

}  // namespace

void cpu_scatter(CpuKernels& list) {
  for (const char* op : {"ScatterElements", "Scatter"}) {
    list.add(op, [](const NodeInfo& info) { return std::make_unique<ScatterElements>(info); });
  }
  list.add("ScatterND", [](const NodeInfo& info) { return std::make_unique<ScatterND>(info); });
  list.add("TensorScatter", [](const NodeInfo& info) { return std::make_unique<TensorScatter>(info); });
}

}  // namespace tenon::ops
