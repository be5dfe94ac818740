// One direction of a recurrent operator over some elements of the batch, step by step.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/lockstep.h"
#include "base/rounding.h"
#include "base/thread_pool.h"
#include "ops/recurrent/activation.h"
#include "ops/recurrent/cpu_weights.h"
#include "tenon/tensor.h"

namespace tenon::ops {

enum class Cell { rnn, gru, lstm };

// What a node's attributes say.
struct RecurrentForm {
  Cell cell;
  int64_t gates, directions = 1;
  bool batch_first, input_forget, linear_before_reset;
  std::optional<float> clip;

  // The gates whose products need only the state before: the candidates of a GRU may need another gate.
  int64_t gates_at_once() const { return cell == Cell::gru && !linear_before_reset ? 2 : gates; }
};

struct Sizes {
  int64_t sequence, batch, input, hidden;
};

// W and R of one direction. Of a GRU, `candidate` has the gate h where it is not computed at once with the others.
// Their rows are in blocks of units: all gates of some units, then all of the next. So a thread that computes some
// units of a step reads one piece of weights and writes one piece of gates.
template <typename T>
struct Direction {
  Weights<T> input, recurrent, candidate;
};

// `rows` of `gates` gates, each `hidden` rows of `k` values, in blocks of `units`.
template <typename T>
std::vector<T> in_blocks(const T* rows, int64_t gates, int64_t hidden, int64_t units, int64_t k) {
  std::vector<T> result;
  result.reserve(static_cast<size_t>(gates * hidden * k));
  for (int64_t first = 0; first < hidden; first += units) {
    const int64_t length = std::min(units, hidden - first);
    for (int64_t gate = 0; gate < gates; ++gate) {
      const T* from = rows + (gate * hidden + first) * k;
      result.insert(result.end(), from, from + length * k);
    }
  }
  return result;
}

// All that a direction works on.
template <typename T>
struct SequenceData {
  Sizes n;
  const Direction<T>* direction;
  int64_t units;  // of a block
  const RecurrentActivation* activations;
  bool reverse;
  int64_t d;
  const T* projected;       // [longest sequence, batch, gates * hidden]: X times W, biases added, in blocks
  const T* recurrent_bias;  // of the gate h of a GRU, when it is added before the reset; or null
  const T* peephole;        // [3 * hidden] or null
  const int32_t* lengths;   // or null
  const T *initial_h, *initial_c;
  T *y, *y_h, *y_c;
};

// The batch elements [first, last) of a direction. Threads share the units of every step.
template <typename T>
class Sequence {
 public:
  Sequence(const RecurrentForm& form, const SequenceData<T>& data, int64_t first, int64_t last, int64_t parts,
           Allocator& allocator)
      : form_(form),
        w_(data),
        first_(first),
        m_(last - first),
        parts_(parts),
        lockstep_(parts, data.n.sequence * phases()) {
    const int64_t line = 64 / sizeof(T), count = round_up(m_ * w_.n.hidden, line);
    const int64_t gates = round_up(m_ * form.gates_at_once() * w_.n.hidden, line);
    memory_ = Tensor(element_type_of<T>, Shape{5 * count + gates}, allocator);
    T* at = memory_.template mutable_data<T>().data();
    std::fill_n(at, 3 * count, T{});
    for (T** piece : {&h_[0], &h_[1], &c_, &reset_, &candidates_}) *piece = std::exchange(at, at + count);
    gates_ = at;
    for (int64_t b = 0; b < m_; ++b) {
      const int64_t state = state_at(b);
      if (w_.initial_h) std::copy_n(w_.initial_h + state, w_.n.hidden, h_[0] + b * w_.n.hidden);
      if (w_.initial_c) std::copy_n(w_.initial_c + state, w_.n.hidden, c_ + b * w_.n.hidden);
    }
  }

  // Takes part in all steps.
  void join(ThreadPool& pool, int64_t part) {
    lockstep_.join(part, [&](int64_t index, int64_t own) { run_part(pool, index, own); });
  }

  // Writes the last states, once all steps are done.
  void finish() {
    const int64_t hidden = w_.n.hidden;
    for (int64_t b = 0; b < m_; ++b) {
      if (w_.y_h) std::copy_n(h_[w_.n.sequence % 2] + b * hidden, hidden, w_.y_h + state_at(b));
      if (w_.y_c) std::copy_n(c_ + b * hidden, hidden, w_.y_c + state_at(b));
    }
  }

 private:
  // Some units, from `begin` on, in the step for time t.
  struct Part {
    int64_t step, t, begin, end;
  };

  int64_t phases() const { return form_.gates_at_once() < form_.gates ? 2 : 1; }

  // Where the state of batch element b lies in initial_h, Y_h and the like.
  int64_t state_at(int64_t b) const {
    b += first_;
    return (form_.batch_first ? b * form_.directions + w_.d : w_.d * w_.n.batch + b) * w_.n.hidden;
  }
  int64_t output_at(int64_t t, int64_t b) const {
    const Sizes& n = w_.n;
    b += first_;
    return (form_.batch_first ? (b * n.sequence + t) * form_.directions + w_.d
                              : (t * form_.directions + w_.d) * n.batch + b) *
           n.hidden;
  }

  bool is_active(int64_t b, int64_t t) const { return !w_.lengths || t < w_.lengths[first_ + b]; }

  // How many of the batch elements there are up to the last one whose sequence has step t.
  int64_t active_rows(int64_t t) const {
    int64_t rows = m_;
    while (rows > 0 && !is_active(rows - 1, t)) --rows;
    return rows;
  }

  const T* projected_at(int64_t t, int64_t b) const {
    return w_.projected + (t * w_.n.batch + first_ + b) * form_.gates * w_.n.hidden;
  }

  // f(first unit, number of units) for all blocks of a part.
  template <class Function>
  void each_block(const Part& part, Function f) const {
    for (int64_t u = part.begin; u < part.end; u += w_.units) f(u, std::min(w_.units, part.end - u));
  }

  void run_part(ThreadPool& pool, int64_t index, int64_t own) {
    const int64_t step = index / phases(), blocks = divide_up(w_.n.hidden, w_.units);
    const Part part{step, w_.reverse ? w_.n.sequence - 1 - step : step, own * blocks / parts_ * w_.units,
                    std::min((own + 1) * blocks / parts_ * w_.units, w_.n.hidden)};
    const bool begins = index % phases() == 0, ends = index % phases() + 1 == phases();
    if (begins) multiply_state(pool, part);
    if (!ends) return reset_states(part);
    if (!begins) multiply_reset_states(pool, part);
    update(part);
  }

  // Products with the state before. A GRU adds X times W later, as its gates need them apart.
  void multiply_state(ThreadPool& pool, const Part& part) {
    const int64_t rows = active_rows(part.t), gates = form_.gates_at_once(), width = gates * w_.n.hidden;
    if (rows == 0) return;
    const T* addend = form_.cell == Cell::gru ? nullptr : projected_at(part.t, 0) + part.begin * form_.gates;
    w_.direction->recurrent.multiply_columns(pool, rows, h_[part.step % 2], part.begin * gates, part.end * gates,
                                             gates_ + part.begin * gates, width, addend, form_.gates * w_.n.hidden,
                                             part.step % 2 != 0);
  }

  void multiply_reset_states(ThreadPool& pool, const Part& part) {
    if (const int64_t rows = active_rows(part.t))
      w_.direction->candidate.multiply_columns(pool, rows, reset_, part.begin, part.end, candidates_ + part.begin,
                                               w_.n.hidden, nullptr, 0, part.step % 2 != 0);
  }

  // Elements whose sequence is over, or in reverse not yet begun, keep their state.
  void update(const Part& part) {
    const int64_t hidden = w_.n.hidden;
    for (int64_t b = 0; b < m_; ++b) {
      const T* before = h_[part.step % 2] + b * hidden;
      T* after = h_[(part.step + 1) % 2] + b * hidden;
      const bool active = is_active(b, part.t), is_lstm = active && form_.cell == Cell::lstm;
      if (is_lstm) lstm_candidates(part, b, after);
      each_block(part, [&](int64_t u, int64_t n) {
        if (!active)
          std::copy_n(before + u, n, after + u);
        else if (form_.cell == Cell::rnn)
          rnn_cell(b, u, n, after + u);
        else if (form_.cell == Cell::gru)
          gru_cell(part.t, b, u, n, before + u, after + u);
        else
          lstm_state(b, u, n, after + u, c_ + b * hidden + u);
      });
      if (is_lstm) lstm_outputs(part, b, after);
      if (!w_.y) continue;
      T* out = w_.y + output_at(part.t, b) + part.begin;
      if (active)
        std::copy(after + part.begin, after + part.end, out);
      else
        std::fill_n(out, part.end - part.begin, T{});
    }
  }

  T* gates_at(int64_t b, int64_t u) const { return gates_ + (b * w_.n.hidden + u) * form_.gates_at_once(); }

  void activate(const RecurrentActivation& f, T* x, int64_t n) const {
    if (form_.clip) {
      const T limit = static_cast<T>(*form_.clip);
      for (int64_t i = 0; i < n; ++i) x[i] = std::min(std::max(x[i], -limit), limit);
    }
    f(x, n);
  }

  void rnn_cell(int64_t b, int64_t u, int64_t n, T* h) const {
    T* gates = gates_at(b, u);
    activate(w_.activations[0], gates, n);
    std::copy_n(gates, n, h);
  }

  // The gates z and r of a GRU.
  T* update_and_reset_gates(int64_t t, int64_t b, int64_t u, int64_t n) const {
    T* __restrict gates = gates_at(b, u);
    const T* projected = projected_at(t, b) + u * form_.gates;
    for (int64_t i = 0; i < 2 * n; ++i) gates[i] += projected[i];
    activate(w_.activations[0], gates, 2 * n);
    return gates;
  }

  // What the candidates of a GRU are computed from, where states are reset before the product.
  void reset_states(const Part& part) {
    for (int64_t b = 0; b < m_; ++b) {
      if (!is_active(b, part.t)) continue;
      const T* h = h_[part.step % 2] + b * w_.n.hidden;
      T* __restrict reset = reset_ + b * w_.n.hidden;
      each_block(part, [&](int64_t u, int64_t n) {
        const T* r = update_and_reset_gates(part.t, b, u, n) + n;
        for (int64_t i = 0; i < n; ++i) reset[u + i] = r[i] * h[u + i];
      });
    }
  }

  void gru_cell(int64_t t, int64_t b, int64_t u, int64_t n, const T* before, T* __restrict after) const {
    const T* input = projected_at(t, b) + u * form_.gates + 2 * n;
    const T *z = gates_at(b, u), *r = z + n, *bias = w_.recurrent_bias;
    T* __restrict candidate;
    if (form_.linear_before_reset) {
      candidate = update_and_reset_gates(t, b, u, n) + 2 * n;
      for (int64_t i = 0; i < n; ++i) candidate[i] = input[i] + r[i] * (candidate[i] + (bias ? bias[u + i] : T{}));
    } else {
      candidate = candidates_ + b * w_.n.hidden + u;
      for (int64_t i = 0; i < n; ++i) candidate[i] += input[i];
    }
    activate(w_.activations[1], candidate, n);
    for (int64_t i = 0; i < n; ++i) after[i] = (1 - z[i]) * candidate[i] + z[i] * before[i];
  }

  // The gate `cell` of all blocks side by side, as functions of many values are faster.
  void lstm_candidates(const Part& part, int64_t b, T* candidates) const {
    each_block(part, [&](int64_t u, int64_t n) { std::copy_n(gates_at(b, u) + 3 * n, n, candidates + u); });
    activate(w_.activations[1], candidates + part.begin, part.end - part.begin);
  }

  // Gates are in the order input, output, forget, cell; peepholes input, output, forget.
  void lstm_state(int64_t b, int64_t u, int64_t n, const T* candidates, T* __restrict c) const {
    T* gates = gates_at(b, u);
    T *input = gates, *output = gates + n, *forget = gates + 2 * n;
    const T *p = w_.peephole ? w_.peephole + u : nullptr, *p_output = p ? p + w_.n.hidden : nullptr,
            *p_forget = p ? p_output + w_.n.hidden : nullptr;
    if (p) {
      for (int64_t i = 0; i < n; ++i) {
        input[i] += p[i] * c[i];
        forget[i] += p_forget[i] * c[i];
      }
      activate(w_.activations[0], input, n);
      activate(w_.activations[0], forget, n);
    } else {
      activate(w_.activations[0], gates, 3 * n);
    }
    if (form_.input_forget) {
      for (int64_t i = 0; i < n; ++i) forget[i] = 1 - input[i];
    }
    for (int64_t i = 0; i < n; ++i) c[i] = forget[i] * c[i] + input[i] * candidates[i];
    if (p) {
      for (int64_t i = 0; i < n; ++i) output[i] += p_output[i] * c[i];
      activate(w_.activations[0], output, n);
    }
  }

  void lstm_outputs(const Part& part, int64_t b, T* __restrict h) const {
    std::copy_n(c_ + b * w_.n.hidden + part.begin, part.end - part.begin, h + part.begin);
    w_.activations[2](h + part.begin, part.end - part.begin);
    each_block(part, [&](int64_t u, int64_t n) {
      const T* output = gates_at(b, u) + n;
      for (int64_t i = 0; i < n; ++i) h[u + i] *= output[i];
    });
  }

  const RecurrentForm& form_;
  const SequenceData<T>& w_;
  const int64_t first_, m_, parts_;
  Lockstep lockstep_;
  Tensor memory_;
  T* h_[2];  // before and after a step, in turns
  T *c_, *reset_, *candidates_, *gates_;
};

}  // namespace tenon::ops
