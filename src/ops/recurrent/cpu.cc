#include <algorithm>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "kernels/transpose/transpose.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/operator.h"
#include "ops/recurrent/cpu_sequence.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

struct Packed {
  std::vector<Direction<float>> directions;

  size_t bytes() const {
    size_t total = 0;
    for (const Direction<float>& direction : directions)
      total += direction.input.bytes() + direction.recurrent.bytes() + direction.candidate.bytes();
    return total;
  }
};

// W and R of all directions, as bytes: those of the first direction, then those of the second.
struct PackedCodes {
  std::vector<kernels::PackedBytes> matrices;

  size_t bytes() const {
    size_t total = 0;
    for (const kernels::PackedBytes& matrix : matrices) total += matrix.panels().bytes();
    return total;
  }
};

class Recurrent final : public Kernel {
 public:
  Recurrent(const NodeInfo& info, Cell cell, bool is_quantized = false)
      : form_{.cell = cell,
              .gates = cell == Cell::rnn   ? 1
                       : cell == Cell::gru ? 3
                                           : 4,
              .batch_first = info.node().int_attribute("layout", 0) != 0,
              .input_forget = info.node().int_attribute("input_forget", 0) != 0,
              .linear_before_reset = info.node().int_attribute("linear_before_reset", 0) != 0,
              .clip =
                  info.node().attribute("clip") ? std::optional(info.node().float_attribute("clip", 0)) : std::nullopt},
        is_quantized_(is_quantized) {
    std::string direction = info.node().string_attribute("direction", "forward");
    form_.directions = direction == "bidirectional" ? 2 : 1;
    reverse_first_ = direction == "reverse";
    std::vector<std::string> defaults = cell == Cell::rnn   ? std::vector<std::string>{"Tanh"}
                                        : cell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                            : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
    activations_ = recurrent_activations(info.node(), form_.directions, defaults);
    if (is_quantized) {
      pack_codes(info);
      return;
    }
    const Tensor *w = info.constant(1), *r = info.constant(2);
    if (!w || !r || w->type() == ElementType::float64 || w->rank() != 3 || r->rank() != 3) return;
    if (w->dim(0) != form_.directions || r->dim(0) != form_.directions || w->dim(1) != form_.gates * r->dim(2) ||
        r->dim(1) != w->dim(1))
      return;
    packed_ = info.packed<Packed>(
        {1, 2},
        fmt::format("cell {}, {} directions, {} gates at once", static_cast<int>(cell), form_.directions,
                    form_.gates_at_once()),
        [&](PackedStorage& storage) {
          Tensor wide_w = *w, wide_r = *r;
          if (storage.fills()) wide_w = as_type<float>(*w, info.threads()), wide_r = as_type<float>(*r, info.threads());
          return Packed{pack(info.threads(), static_cast<const float*>(wide_w.raw()),
                             static_cast<const float*>(wide_r.raw()), w->dim(2), r->dim(2), storage)};
        });
  }

  void run(KernelRun& run) const override {
    dispatch_compute(run.input(0).type(), [&]<typename T>() { compute<T>(run); });
  }

 private:
  // Products of a step that are worth a thread.
  static constexpr int64_t least_products = 24 << 10;

  // How many units are a block of weights: whole panels, and enough that functions of them are worth a call; all where
  // they are too few for two threads.
  template <typename T>
  int64_t units_of_a_block(int64_t hidden) const {
    constexpr int64_t least = 24;
    const bool is_shared =
        form_.gates_at_once() * hidden >= divide_up(2 * least_products, std::max<int64_t>(hidden, 1));
    return std::is_same_v<T, float> && !is_quantized_ && is_shared ? round_up(least, kernels::gemm_panel_columns())
                                                                   : hidden;
  }

  template <typename T>
  std::vector<Direction<T>> pack(ThreadPool& pool, const T* w, const T* r, int64_t input, int64_t hidden,
                                 PackedStorage& storage = fresh_storage()) const {
    const int64_t rows = form_.gates * hidden, units = units_of_a_block<T>(hidden), first = form_.gates_at_once();
    const auto weights = [&](const T* data, int64_t gates, int64_t k) {
      const bool in_order = units >= hidden || !storage.fills();
      const std::vector<T> blocks = in_order ? std::vector<T>() : in_blocks(data, gates, hidden, units, k);
      return Weights<T>(pool, in_order ? data : blocks.data(), gates * hidden, k, storage);
    };
    std::vector<Direction<T>> result;
    for (int64_t d = 0; d < form_.directions; ++d) {
      const T* own = r + d * rows * hidden;
      result.push_back({weights(w + d * rows * input, form_.gates, input), weights(own, first, hidden), {}});
      if (first < form_.gates)
        result.back().candidate = weights(own + first * hidden * hidden, form_.gates - first, hidden);
    }
    return result;
  }

  // DynamicQuantizeLSTM's weights, scales and zero points; why_not_quantized says what they are like.
  void pack_codes(const NodeInfo& info) {
    const auto make = [&](PackedStorage& storage) {
      PackedCodes result;
      for (int64_t d = 0; d < form_.directions; ++d) {
        for (size_t i : {1, 2}) result.matrices.push_back(pack_codes(info, i, 7 + 2 * i, d, storage));
      }
      return result;
    };
    codes_ = info.packed<PackedCodes>({1, 2, 9, 11}, fmt::format("{} directions", form_.directions), make);
    if (!codes_) codes_ = std::make_shared<const PackedCodes>(make(fresh_storage()));
    for (int64_t d = 0; d < form_.directions; ++d) {
      const kernels::PackedBytes* own = codes_->matrices.data() + 2 * d;
      quantized_.push_back({Weights<float>(ByteWeights(own[0], scales_of(*info.constant(8), d))),
                            Weights<float>(ByteWeights(own[1], scales_of(*info.constant(10), d))),
                            {}});
    }
  }

  // Weights of a direction; their zero points are one or one for each column.
  kernels::PackedBytes pack_codes(const NodeInfo& info, size_t input, size_t zero_input, int64_t d,
                                  PackedStorage& storage) const {
    const Tensor &codes = *info.constant(input), &zeros = *info.constant(zero_input);
    const int64_t k = codes.dim(1), n = codes.dim(2), count = zeros.elements() / form_.directions;
    const bool is_signed = codes.type() == ElementType::int8;
    std::vector<int32_t> own(static_cast<size_t>(count));
    for (int64_t i = 0; storage.fills() && i < count; ++i) {
      const auto at = static_cast<size_t>(d * count + i);
      own[static_cast<size_t>(i)] = is_signed ? zeros.data<int8_t>()[at] : zeros.data<uint8_t>()[at];
    }
    return kernels::PackedBytes(info.threads(), kernels::GemmSide::right, n, k,
                                {static_cast<const uint8_t*>(codes.raw()) + d * k * n, is_signed, n},
                                {own.data(), count > 1}, kernels::int8_kernels(), storage);
  }

  std::vector<float> scales_of(const Tensor& all, int64_t d) const {
    const auto own = all.data<float>().subspan(static_cast<size_t>(d * all.elements() / form_.directions),
                                               static_cast<size_t>(all.elements() / form_.directions));
    return {own.begin(), own.end()};
  }

  template <typename T>
  void compute(KernelRun& run) const {
    const Shape& shape = run.input(0).shape();
    Sizes n{shape[form_.batch_first ? 1 : 0], shape[form_.batch_first ? 0 : 1], shape[2],
            run.input(2).dim(is_quantized_ ? 1 : 2)};
    const int64_t rows = form_.gates * n.hidden;
    ComputeArguments<T> arguments(run);
    const T* x = arguments.in(0);
    T *y = arguments.out(0), *y_h = arguments.out(1), *y_c = form_.cell == Cell::lstm ? arguments.out(2) : nullptr;
    if (n.batch == 0 || n.hidden == 0) return;
    const int32_t* lengths = run.has_input(4) ? run.data<int32_t>(4).data() : nullptr;
    check_lengths(lengths, n);

    std::vector<Direction<T>> own;
    const Direction<T>* directions = nullptr;
    if constexpr (std::is_same_v<T, float>)
      directions = packed_ ? packed_->directions.data() : is_quantized_ ? quantized_.data() : nullptr;
    if (!directions) {
      own = pack(run.threads(), arguments.in(1), arguments.in(2), n.input, n.hidden);
      directions = own.data();
    }
    Tensor time_major;
    if (form_.batch_first) {
      time_major = Tensor(element_type_of<T>, Shape{n.sequence, n.batch, n.input}, run.allocator());
      const int64_t swap[] = {1, 0, 2};
      kernels::transpose(run.threads(), x, time_major.mutable_data<T>().data(), shape.dims(), swap, sizeof(T));
      x = time_major.data<T>().data();
    }

    const int64_t longest = lengths ? *std::max_element(lengths, lengths + n.batch) : n.sequence;
    const int64_t steps = checked_mul(longest, n.batch);
    Tensor projected(element_type_of<T>, Shape{form_.directions, steps, rows}, run.allocator());
    const T *bias = arguments.in(3), *initial_h = arguments.in(5);
    const T *initial_c = form_.cell == Cell::lstm ? arguments.in(6) : nullptr,
            *peephole = form_.cell == Cell::lstm ? arguments.in(7) : nullptr;
    const int64_t units = units_of_a_block<T>(n.hidden);
    std::vector<T> sums(static_cast<size_t>(rows));
    std::vector<SequenceData<T>> works;
    for (int64_t d = 0; d < form_.directions; ++d) {
      T* gates = projected.mutable_data<T>().data() + d * steps * rows;
      const T* own_bias = bias ? bias + d * 2 * rows : nullptr;
      for (int64_t i = 0; i < rows; ++i) {
        const bool later = form_.cell == Cell::gru && form_.linear_before_reset && i >= 2 * n.hidden;
        sums[static_cast<size_t>(i)] = own_bias ? own_bias[i] + (later ? T{} : own_bias[rows + i]) : T{};
      }
      const std::vector<T> addend = in_blocks(sums.data(), form_.gates, n.hidden, units, 1);
      if (n.input > 0) {
        directions[d].input.multiply(run.threads(), steps, x, gates, rows, addend.data(), 0);
      } else {
        for (int64_t i = 0; i < steps; ++i) std::copy(addend.begin(), addend.end(), gates + i * rows);
      }
      works.push_back(
          {n, &directions[d], units,
           activations_.data() + static_cast<size_t>(d) * activations_.size() / static_cast<size_t>(form_.directions),
           reverse_first_ || d == 1, d, gates, own_bias ? own_bias + rows + 2 * n.hidden : nullptr,
           peephole ? peephole + d * 3 * n.hidden : nullptr, lengths, initial_h, initial_c, y, y_h, y_c});
    }
    run_sequences(run, works);
    arguments.finish();
  }

  // Directions and parts of the batch do not depend on each other; where they are fewer than threads, these share the
  // units of every step. Quantized states depend on each other: all of a step have one scale.
  template <typename T>
  void run_sequences(KernelRun& run, const std::vector<SequenceData<T>>& works) const {
    constexpr int64_t least_rows = 8;
    const Sizes& n = works[0].n;
    const int64_t threads = run.threads().size(), most_parts = is_quantized_ ? 1 : divide_up(threads, form_.directions),
                  parts = std::clamp<int64_t>(n.batch / least_rows, 1, most_parts);
    const int64_t wanted = n.batch / parts * form_.gates * n.hidden * n.hidden / least_products,
                  most_shares = std::min(divide_up(n.hidden, works[0].units), threads / (form_.directions * parts)),
                  shares = std::max<int64_t>(1, std::min(wanted, most_shares));
    std::vector<std::unique_ptr<Sequence<T>>> sequences;
    for (const SequenceData<T>& work : works) {
      for (int64_t part = 0; part < parts; ++part)
        sequences.push_back(std::make_unique<Sequence<T>>(form_, work, part * n.batch / parts,
                                                          (part + 1) * n.batch / parts, shares, run.allocator()));
    }
    run.threads().parallel_for(static_cast<int64_t>(sequences.size()) * shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        sequences[static_cast<size_t>(task / shares)]->join(run.threads(), task % shares);
    });
    for (const auto& sequence : sequences) sequence->finish();
  }

  static void check_lengths(const int32_t* lengths, const Sizes& n) {
    for (int64_t b = 0; lengths && b < n.batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > n.sequence) {
        fail(ErrorCode::invalid_value, "sequence_lens[{}] is {}; the sequences have {} steps", b, lengths[b],
             n.sequence);
      }
    }
  }

  RecurrentForm form_;
  bool is_quantized_, reverse_first_ = false;
  std::vector<RecurrentActivation> activations_;
  std::shared_ptr<const Packed> packed_;
  std::shared_ptr<const PackedCodes> codes_;
  std::vector<Direction<float>> quantized_;
};

// Empty where the kernel has DynamicQuantizeLSTM's weights: W [directions, inputs, 4 * hidden] and R, with scales and
// zero points by direction, or by direction and column.
std::string why_not_quantized(const ir::Node& node) {
  for (size_t i : {1, 2, 8, 9, 10, 11}) {
    if (!node.input(i) || !node.input(i)->is_fixed()) return "its weights, scales or zero points are computed";
  }
  const auto shape = [&](size_t i) -> const Shape& { return node.input(i)->constant()->tensor.shape(); };
  const Shape &w = shape(1), &r = shape(2);
  const int64_t directions = node.string_attribute("direction", "forward") == "bidirectional" ? 2 : 1;
  const auto fits = [&](size_t i) {
    const int64_t count = shape(i).elements();
    return count == directions || count == directions * r[2];
  };
  const bool agree = w.rank() == 3 && r.rank() == 3 && w[0] == directions && r[0] == directions && w[2] == r[2] &&
                     r[2] == 4 * r[1] && w[1] > 0 && r[1] > 0;
  return agree && fits(8) && fits(9) && fits(10) && fits(11) ? "" : "the shapes of its weights do not agree";
}

}  // namespace

void cpu_recurrent(CpuKernels& list) {
  list.add("RNN", [](const NodeInfo& info) { return std::make_unique<Recurrent>(info, Cell::rnn); });
  list.add("GRU", [](const NodeInfo& info) { return std::make_unique<Recurrent>(info, Cell::gru); });
  list.add("LSTM", [](const NodeInfo& info) { return std::make_unique<Recurrent>(info, Cell::lstm); });
  list.add(
      "DynamicQuantizeLSTM", [](const NodeInfo& info) { return std::make_unique<Recurrent>(info, Cell::lstm, true); },
      why_not_quantized, microsoft);
}

}  // namespace tenon::ops
