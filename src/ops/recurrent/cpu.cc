#include <algorithm>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "kernels/transpose/transpose.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/operator.h"
#include "ops/recurrent/activation.h"
#include "ops/recurrent/cpu_weights.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

enum class Cell { rnn, gru, lstm };

// W and R of one direction. Of a GRU, `recurrent` has the gates z and r and `candidate` the gate h.
template <typename T>
struct Direction {
  Weights<T> input, recurrent, candidate;
};

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

struct Sizes {
  int64_t sequence, batch, input, hidden;
};

class Recurrent final : public Kernel {
 public:
  Recurrent(const NodeInfo& info, Cell cell, bool is_quantized = false)
      : cell_(cell),
        is_quantized_(is_quantized),
        gates_(cell == Cell::rnn   ? 1
               : cell == Cell::gru ? 3
                                   : 4),
        batch_first_(info.node().int_attribute("layout", 0) != 0),
        input_forget_(info.node().int_attribute("input_forget", 0) != 0),
        linear_before_reset_(info.node().int_attribute("linear_before_reset", 0) != 0),
        clip_(info.node().attribute("clip") ? std::optional(info.node().float_attribute("clip", 0)) : std::nullopt) {
    std::string direction = info.node().string_attribute("direction", "forward");
    directions_ = direction == "bidirectional" ? 2 : 1;
    reverse_first_ = direction == "reverse";
    std::vector<std::string> defaults = cell == Cell::rnn   ? std::vector<std::string>{"Tanh"}
                                        : cell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                            : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
    activations_ = recurrent_activations(info.node(), directions_, defaults);
    if (is_quantized) {
      pack_codes(info);
      return;
    }
    const Tensor *w = info.constant(1), *r = info.constant(2);
    if (!w || !r || w->type() == ElementType::float64 || w->rank() != 3 || r->rank() != 3) return;
    if (w->dim(0) != directions_ || r->dim(0) != directions_ || w->dim(1) != gates_ * r->dim(2) ||
        r->dim(1) != w->dim(1))
      return;
    packed_ = info.packed<Packed>(
        {1, 2}, fmt::format("cell {}, {} directions", static_cast<int>(cell), directions_),
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
  template <typename T>
  std::vector<Direction<T>> pack(ThreadPool& pool, const T* w, const T* r, int64_t input, int64_t hidden,
                                 PackedStorage& storage = fresh_storage()) const {
    std::vector<Direction<T>> result;
    const int64_t rows = gates_ * hidden, first = cell_ == Cell::gru ? 2 * hidden : rows;
    for (int64_t d = 0; d < directions_; ++d) {
      const T* own = r + d * rows * hidden;
      result.push_back({Weights<T>(pool, w + d * rows * input, rows, input, storage),
                        Weights<T>(pool, own, first, hidden, storage),
                        {}});
      if (cell_ == Cell::gru) result.back().candidate = Weights<T>(pool, own + first * hidden, hidden, hidden, storage);
    }
    return result;
  }

  // DynamicQuantizeLSTM's weights, scales and zero points; why_not_quantized says what they are like.
  void pack_codes(const NodeInfo& info) {
    const auto make = [&](PackedStorage& storage) {
      PackedCodes result;
      for (int64_t d = 0; d < directions_; ++d) {
        for (size_t i : {1, 2}) result.matrices.push_back(pack_codes(info, i, 7 + 2 * i, d, storage));
      }
      return result;
    };
    codes_ = info.packed<PackedCodes>({1, 2, 9, 11}, fmt::format("{} directions", directions_), make);
    if (!codes_) codes_ = std::make_shared<const PackedCodes>(make(fresh_storage()));
    for (int64_t d = 0; d < directions_; ++d) {
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
    const int64_t k = codes.dim(1), n = codes.dim(2), count = zeros.elements() / directions_;
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
    const auto own = all.data<float>().subspan(static_cast<size_t>(d * all.elements() / directions_),
                                               static_cast<size_t>(all.elements() / directions_));
    return {own.begin(), own.end()};
  }

  // All that one run works on.
  template <typename T>
  struct Work {
    Sizes n;
    const Direction<T>* direction;
    const RecurrentActivation* activations;
    bool reverse;
    int64_t d;
    const T* projected;       // [longest sequence, batch, gates * hidden]: X times W, biases added
    const T* recurrent_bias;  // of the gate h of a GRU, when it is added before the reset
    const T* peephole;        // [3 * hidden] or null
    const int32_t* lengths;   // or null
    const T *initial_h, *initial_c;
    T *y, *y_h, *y_c;
  };

  template <typename T>
  void compute(KernelRun& run) const {
    const Shape& shape = run.input(0).shape();
    Sizes n{shape[batch_first_ ? 1 : 0], shape[batch_first_ ? 0 : 1], shape[2],
            run.input(2).dim(is_quantized_ ? 1 : 2)};
    const int64_t rows = gates_ * n.hidden;
    ComputeArguments<T> arguments(run);
    const T* x = arguments.in(0);
    T *y = arguments.out(0), *y_h = arguments.out(1), *y_c = cell_ == Cell::lstm ? arguments.out(2) : nullptr;
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
    if (batch_first_) {
      time_major = Tensor(element_type_of<T>, Shape{n.sequence, n.batch, n.input}, run.allocator());
      const int64_t swap[] = {1, 0, 2};
      kernels::transpose(run.threads(), x, time_major.mutable_data<T>().data(), shape.dims(), swap, sizeof(T));
      x = time_major.data<T>().data();
    }

    const int64_t longest = lengths ? *std::max_element(lengths, lengths + n.batch) : n.sequence;
    const int64_t steps = checked_mul(longest, n.batch);
    Tensor projected(element_type_of<T>, Shape{directions_, steps, rows}, run.allocator());
    const T *bias = arguments.in(3), *initial_h = arguments.in(5);
    const T *initial_c = cell_ == Cell::lstm ? arguments.in(6) : nullptr,
            *peephole = cell_ == Cell::lstm ? arguments.in(7) : nullptr;
    std::vector<T> sums(static_cast<size_t>(rows));
    std::vector<Work<T>> works;
    for (int64_t d = 0; d < directions_; ++d) {
      T* gates = projected.mutable_data<T>().data() + d * steps * rows;
      const T* own_bias = bias ? bias + d * 2 * rows : nullptr;
      for (int64_t i = 0; i < rows; ++i) {
        const bool later = cell_ == Cell::gru && linear_before_reset_ && i >= 2 * n.hidden;
        sums[static_cast<size_t>(i)] = own_bias ? own_bias[i] + (later ? T{} : own_bias[rows + i]) : T{};
      }
      if (n.input > 0) {
        directions[d].input.multiply(run.threads(), steps, x, gates, rows, sums.data(), 0);
      } else {
        for (int64_t i = 0; i < steps; ++i) std::copy(sums.begin(), sums.end(), gates + i * rows);
      }
      works.push_back(
          {n, &directions[d],
           activations_.data() + static_cast<size_t>(d) * activations_.size() / static_cast<size_t>(directions_),
           reverse_first_ || d == 1, d, gates, own_bias ? own_bias + rows + 2 * n.hidden : nullptr,
           peephole ? peephole + d * 3 * n.hidden : nullptr, lengths, initial_h, initial_c, y, y_h, y_c});
    }

    // Directions and parts of the batch do not depend on each other; alone, one leaves its threads to the products.
    // Quantized states do: all of a step have one scale.
    constexpr int64_t least_rows = 8;
    const int64_t most = is_quantized_ ? 1 : (run.threads().size() + directions_ - 1) / directions_,
                  parts = std::clamp<int64_t>(n.batch / least_rows, 1, most);
    run.threads().parallel_for(directions_ * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task % parts;
        run_sequence(run.threads(), works[static_cast<size_t>(task / parts)], part * n.batch / parts,
                     (part + 1) * n.batch / parts);
      }
    });
    arguments.finish();
  }

  static void check_lengths(const int32_t* lengths, const Sizes& n) {
    for (int64_t b = 0; lengths && b < n.batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > n.sequence) {
        fail(ErrorCode::invalid_value, "sequence_lens[{}] is {}; the sequences have {} steps", b, lengths[b],
             n.sequence);
      }
    }
  }

  // Where the state of batch element b lies in initial_h, Y_h and the like.
  int64_t state_at(const Sizes& n, int64_t d, int64_t b) const {
    return (batch_first_ ? b * directions_ + d : d * n.batch + b) * n.hidden;
  }
  int64_t output_at(const Sizes& n, int64_t t, int64_t d, int64_t b) const {
    return (batch_first_ ? (b * n.sequence + t) * directions_ + d : (t * directions_ + d) * n.batch + b) * n.hidden;
  }

  // How many of the batch elements [first, last) there are up to the last one whose sequence has step t.
  static int64_t active_rows(const int32_t* lengths, int64_t t, int64_t first, int64_t last) {
    while (lengths && last > first && t >= lengths[last - 1]) --last;
    return last - first;
  }

  // All steps of the batch elements [first, last). Elements whose sequence is over, or in reverse not yet begun, keep
  // their state.
  template <typename T>
  void run_sequence(ThreadPool& pool, const Work<T>& w, int64_t first, int64_t last) const {
    const Sizes& n = w.n;
    const int64_t m = last - first, width = gates_ * n.hidden;
    const auto count = static_cast<size_t>(m * n.hidden);
    std::vector<T> h(count), c(cell_ == Cell::lstm ? count : 0), gates(static_cast<size_t>(m * width)),
        extra(cell_ == Cell::gru ? count : 0);
    for (int64_t b = 0; b < m; ++b) {
      const int64_t at = state_at(n, w.d, first + b);
      if (w.initial_h) std::copy_n(w.initial_h + at, n.hidden, h.data() + b * n.hidden);
      if (w.initial_c) std::copy_n(w.initial_c + at, n.hidden, c.data() + b * n.hidden);
    }
    for (int64_t step = 0; step < n.sequence; ++step) {
      const int64_t t = w.reverse ? n.sequence - 1 - step : step;
      if (const int64_t rows = active_rows(w.lengths, t, first, last)) {
        const T* projected = w.projected + (t * n.batch + first) * width;
        const bool backwards = step % 2 != 0;
        w.direction->recurrent.multiply(pool, rows, h.data(), gates.data(), width, projected, width, backwards);
        if (cell_ == Cell::gru)
          gru_candidates(pool, w, rows, h.data(), gates.data(), extra.data(), projected, backwards);
      }
      for (int64_t b = 0; b < m; ++b) {
        T *state = h.data() + b * n.hidden, *own = gates.data() + b * width;
        const bool active = !w.lengths || t < w.lengths[first + b];
        if (active && cell_ == Cell::rnn) rnn_cell(w, own, state);
        if (active && cell_ == Cell::gru) gru_cell(w, own, state);
        if (active && cell_ == Cell::lstm) lstm_cell(w, own, c.data() + b * n.hidden, state);
        if (!w.y) continue;
        T* out = w.y + output_at(n, t, w.d, first + b);
        if (active)
          std::copy_n(state, n.hidden, out);
        else
          std::fill_n(out, n.hidden, T{});
      }
    }
    for (int64_t b = 0; b < m; ++b) {
      const int64_t at = state_at(n, w.d, first + b);
      if (w.y_h) std::copy_n(h.data() + b * n.hidden, n.hidden, w.y_h + at);
      if (w.y_c) std::copy_n(c.data() + b * n.hidden, n.hidden, w.y_c + at);
    }
  }

  template <typename T>
  void activate(const RecurrentActivation& f, T* x, int64_t n) const {
    if (clip_) {
      const T limit = static_cast<T>(*clip_);
      for (int64_t i = 0; i < n; ++i) x[i] = std::min(std::max(x[i], -limit), limit);
    }
    f(x, n);
  }

  template <typename T>
  void rnn_cell(const Work<T>& w, T* gates, T* h) const {
    activate(w.activations[0], gates, w.n.hidden);
    std::copy_n(gates, w.n.hidden, h);
  }

  // Activates z and r and completes the input of the gate h.
  template <typename T>
  void gru_candidates(ThreadPool& pool, const Work<T>& w, int64_t m, const T* h, T* gates, T* extra, const T* projected,
                      bool backwards) const {
    const int64_t hidden = w.n.hidden, width = 3 * hidden;
    for (int64_t b = 0; b < m; ++b) activate(w.activations[0], gates + b * width, 2 * hidden);
    if (!linear_before_reset_) {
      for (int64_t b = 0; b < m; ++b) {
        const T *r = gates + b * width + hidden, *state = h + b * hidden;
        T* __restrict reset = extra + b * hidden;
        for (int64_t i = 0; i < hidden; ++i) reset[i] = r[i] * state[i];
      }
      return w.direction->candidate.multiply(pool, m, extra, gates + 2 * hidden, width, projected + 2 * hidden, width,
                                             backwards);
    }
    const std::vector<T> zeros(w.recurrent_bias ? 0 : static_cast<size_t>(hidden));
    w.direction->candidate.multiply(pool, m, h, extra, hidden, w.recurrent_bias ? w.recurrent_bias : zeros.data(), 0,
                                    backwards);
    for (int64_t b = 0; b < m; ++b) {
      const T *r = gates + b * width + hidden, *linear = extra + b * hidden,
              *input = projected + b * width + 2 * hidden;
      T* __restrict candidate = gates + b * width + 2 * hidden;
      for (int64_t i = 0; i < hidden; ++i) candidate[i] = input[i] + r[i] * linear[i];
    }
  }

  template <typename T>
  void gru_cell(const Work<T>& w, T* gates, T* __restrict h) const {
    const int64_t hidden = w.n.hidden;
    activate(w.activations[1], gates + 2 * hidden, hidden);
    const T *z = gates, *candidate = gates + 2 * hidden;
    for (int64_t i = 0; i < hidden; ++i) h[i] = (1 - z[i]) * candidate[i] + z[i] * h[i];
  }

  // Gates are in the order input, output, forget, cell; peepholes input, output, forget.
  template <typename T>
  void lstm_cell(const Work<T>& w, T* gates, T* __restrict c, T* __restrict h) const {
    const int64_t n = w.n.hidden;
    T *input = gates, *output = gates + n, *forget = gates + 2 * n, *cell = gates + 3 * n;
    const T* p = w.peephole;
    if (p) {
      for (int64_t i = 0; i < n; ++i) {
        input[i] += p[i] * c[i];
        forget[i] += p[2 * n + i] * c[i];
      }
      activate(w.activations[0], input, n);
      activate(w.activations[0], forget, n);
    } else {
      activate(w.activations[0], gates, 3 * n);
    }
    if (input_forget_) {
      for (int64_t i = 0; i < n; ++i) forget[i] = 1 - input[i];
    }
    activate(w.activations[1], cell, n);
    for (int64_t i = 0; i < n; ++i) c[i] = forget[i] * c[i] + input[i] * cell[i];
    if (p) {
      for (int64_t i = 0; i < n; ++i) output[i] += p[n + i] * c[i];
      activate(w.activations[0], output, n);
    }
    std::copy_n(c, n, cell);
    w.activations[2](cell, n);
    for (int64_t i = 0; i < n; ++i) h[i] = output[i] * cell[i];
  }

  Cell cell_;
  bool is_quantized_;
  int64_t gates_, directions_ = 1;
  bool batch_first_, input_forget_, linear_before_reset_, reverse_first_ = false;
  std::optional<float> clip_;
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
