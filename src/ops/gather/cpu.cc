#include <algorithm>
#include <cstring>

#include "base/cpu_features.h"
#include "base/whole_lines.h"
#include "ops/cpu_support/indices.h"
#include "ops/cpu_support/strided_copy.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

constexpr int64_t grain_bytes = 32 << 10;

int64_t grain_for(int64_t bytes) { return std::max<int64_t>(1, grain_bytes / std::max<int64_t>(bytes, 1)); }

int to_axis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

// Blocks that lie anywhere: how many are fetched before they are copied.
constexpr int64_t most_ahead = 32;
int64_t blocks_ahead(int64_t block_bytes) {
  constexpr int64_t bytes_ahead = 16 << 10;
  return std::clamp<int64_t>(bytes_ahead / block_bytes, 1, most_ahead);
}

// Copies `count` such blocks one after the other.
void copy_one_by_one(const std::byte* from, std::span<const int64_t> starts, size_t count, std::byte* to,
                     size_t block_bytes) {
  const auto ahead = static_cast<size_t>(blocks_ahead(static_cast<int64_t>(block_bytes)));
  for (size_t i = 0; i < count; ++i, to += block_bytes) {
    const std::byte* next = i + ahead < starts.size() ? from + starts[i + ahead] : nullptr;
    copy_in_order(to, from + starts[i], block_bytes, next);
  }
}

constexpr size_t line_bytes = 64, turn_bytes = 256, blocks_in_turns = 8;

#ifdef __aarch64__
constexpr bool turns_gain = true;
#else
constexpr bool turns_gain = false;
#endif

// A block of many lines that is read from its first to its last makes a core fetch what lies behind it, which nobody
// reads. Reading a piece of another block after each piece keeps it from that. In memory that no cache holds this gains
// more than it costs on aarch64, as long as a piece is whole lines of the output; x86_64 loses by it.
bool copies_in_turns(int64_t from_bytes, const std::byte* to, size_t block_bytes) {
  return turns_gain && from_bytes > 8 * cpu_features().l2_bytes && block_bytes >= 4 * turn_bytes &&
         block_bytes <= (16 << 10) && block_bytes % line_bytes == 0 &&
         reinterpret_cast<uintptr_t>(to) % line_bytes == 0;
}

void copy_in_turns(const std::byte* from, std::span<const int64_t> starts, size_t count, std::byte* to,
                   size_t block_bytes) {
  while (count > 0) {
    const size_t blocks = std::min(count, blocks_in_turns), fetched = std::min(starts.size() - blocks, blocks);
    for (size_t at = 0; at < block_bytes; at += turn_bytes) {
      const size_t bytes = std::min(turn_bytes, block_bytes - at);
      for (size_t i = 0; i < blocks; ++i)
        copy_in_order(to + i * block_bytes + at, from + starts[i] + at, bytes,
                      i < fetched ? from + starts[blocks + i] + at : nullptr);
    }
    count -= blocks;
    starts = starts.subspan(blocks);
    to += blocks * block_bytes;
  }
}

// Copies `count` blocks of `length` elements; block i starts at from_index(i), which is called once per block.
template <typename FromIndex>
void copy_blocks(ThreadPool& threads, const Tensor& from, Tensor& to, int64_t count, int64_t length,
                 FromIndex&& from_index) {
  const int64_t bytes = bits_of(from.type()) / 8, block_bytes = length * bytes;
  auto* target = static_cast<std::byte*>(to.mutable_raw());
  const auto copy = copies_in_turns(from.elements() * bytes, target, static_cast<size_t>(block_bytes))
                        ? copy_in_turns
                        : copy_one_by_one;
  threads.parallel_for(count, grain_for(block_bytes), [&](int64_t begin, int64_t end) {
    if (length == 1) {
      dispatch_width(from.type(), [&]<typename T>() {
        const T* in = static_cast<const T*>(from.raw());
        T* out = static_cast<T*>(to.mutable_raw());
        for (int64_t i = begin; i < end; ++i) out[i] = in[from_index(i)];
      });
      return;
    }
    if (from.type() == ElementType::string) {
      for (int64_t i = begin; i < end; ++i)
        copy_elements(from.type(), from.raw(), from_index(i), to.mutable_raw(), i * length, length);
      return;
    }
    // Where blocks start, of more than are copied at once.
    constexpr int64_t at_once = 256;
    int64_t starts[at_once + most_ahead], known = 0;
    for (int64_t n = 0; begin < end; begin += n) {
      n = std::min(at_once, end - begin);
      for (; known < std::min(at_once + most_ahead, end - begin); ++known)
        starts[known] = from_index(begin + known) * bytes;
      copy(static_cast<const std::byte*>(from.raw()), {starts, static_cast<size_t>(known)}, static_cast<size_t>(n),
           target + begin * block_bytes, static_cast<size_t>(block_bytes));
      std::copy(starts + n, starts + known, starts);
      known -= n;
    }
  });
}

class Gather final : public Kernel {
 public:
  explicit Gather(const NodeInfo& info) : axis_(info.node().int_attribute("axis", 0)) {}

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &picks = run.input(1);
    int axis = to_axis(axis_, x.rank());
    int64_t size = x.dim(axis), count = picks.elements();
    int64_t outer = x.shape().elements(0, axis), inner = x.shape().elements(axis + 1, x.rank());
    Indices indices(picks);
    if (outer == 1 && count == 1)
      return run.set_output(0, x.part(indices.at(0, size, axis) * inner, output_shape(run, 0)));
    Tensor& y = run.output(0);
    if (y.elements() == 0) {
      for (int64_t i = 0; i < count; ++i) indices.at(i, size, axis);
      return;
    }
    if (outer == 1)
      return copy_blocks(run.threads(), x, y, count, inner,
                         [&](int64_t i) { return indices.at(i, size, axis) * inner; });
    copy_blocks(run.threads(), x, y, outer * count, inner,
                [&](int64_t i) { return (i / count * size + indices.at(i % count, size, axis)) * inner; });
  }

 private:
  int64_t axis_;
};

class GatherElements final : public Kernel {
 public:
  explicit GatherElements(const NodeInfo& info) : axis_(info.node().int_attribute("axis", 0)) {}

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &picks = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    int rank = x.rank(), axis = to_axis(axis_, rank);
    auto strides = dense_strides(x.shape());
    Indices indices(picks);
    // Rows along the last axis; the axis that is gathered does not move the start of a row.
    int64_t columns = rank ? y.dim(rank - 1) : 1, size = x.dim(axis), stride = strides[static_cast<size_t>(axis)];
    bool along_rows = axis == rank - 1;
    const auto row_start = [&](int64_t row) {
      int64_t start = 0;
      for (int a = rank - 2; a >= 0; --a) {
        if (a != axis) start += row % y.dim(a) * strides[static_cast<size_t>(a)];
        row /= y.dim(a);
      }
      return start;
    };
    dispatch_width(x.type(), [&]<typename T>() {
      const T* in = static_cast<const T*>(x.raw());
      T* out = static_cast<T*>(y.mutable_raw());
      const int64_t grain = grain_for(columns * static_cast<int64_t>(sizeof(T)));
      run.threads().parallel_for(y.elements() / columns, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = in + row_start(row);
          T* to = out + row * columns;
          if (along_rows)
            indices.for_each(row * columns, columns, size, axis,
                             [=](int64_t i, int64_t index) { to[i] = from[index]; });
          else
            indices.for_each(row * columns, columns, size, axis,
                             [=](int64_t i, int64_t index) { to[i] = from[index * stride + i]; });
        }
      });
    });
  }

 private:
  int64_t axis_;
};

class GatherND final : public Kernel {
 public:
  explicit GatherND(const NodeInfo& info) : batch_axes_(static_cast<int>(info.node().int_attribute("batch_dims", 0))) {}

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &picks = run.input(1);
    Tensor& y = run.output(0);
    int depth = static_cast<int>(picks.dim(picks.rank() - 1)), first = batch_axes_;
    auto strides = dense_strides(x.shape());
    int64_t batches = x.shape().elements(0, first), per_batch = x.shape().elements(first, x.rank());
    int64_t inner = x.shape().elements(first + depth, x.rank()), count = picks.elements() / depth;
    if (count == 0 || y.elements() == 0) return;
    int64_t per_batch_count = count / batches;
    Indices indices(picks);
    copy_blocks(run.threads(), x, y, count, inner, [&](int64_t i) {
      int64_t at = i / per_batch_count * per_batch;
      for (int k = 0; k < depth; ++k)
        at += indices.at(i * depth + k, x.dim(first + k), first + k) *
              strides[static_cast<size_t>(first) + static_cast<size_t>(k)];
      return at;
    });
  }

 private:
  int batch_axes_;
};

}  // namespace

void cpu_gather(CpuKernels& list) {
  list.add("Gather", [](const NodeInfo& info) { return std::make_unique<Gather>(info); });
  list.add("GatherElements", [](const NodeInfo& info) { return std::make_unique<GatherElements>(info); });
  list.add("GatherND", [](const NodeInfo& info) { return std::make_unique<GatherND>(info); });
}

}  // namespace tenon::ops
