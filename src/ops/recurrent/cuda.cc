#include <algorithm>
#include <cctype>
#include <optional>

#include "base/fail.h"
#include "cuda/gemm.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

enum class Cell : uint8_t { rnn, gru, lstm };

// An activation as an expression of x; $a and $b are its parameters.
struct Activation {
  const char* name;
  const char* text;
  float alpha = 0, beta = 0;
  bool takes_alpha = false, takes_beta = false;
};

constexpr Activation activations[] = {
    {"sigmoid", "(C)1 / ((C)1 + exp(-x))"},
    {"tanh", "tanh(x)"},
    {"relu", "x > (C)0 ? x : (C)0 * x"},
    {"affine", "$a * x + $b", 1, 0, true, true},
    {"leakyrelu", "x >= (C)0 ? x : $a * x", 0.01f, 0, true},
    {"thresholdedrelu", "x > $a ? x : (C)0", 1, 0, true},
    {"scaledtanh", "$a * tanh($b * x)", 1, 1, true, true},
    {"hardsigmoid", "least(most($a * x + $b, (C)0), (C)1)", 0.2f, 0.5f, true, true},
    {"elu", "x >= (C)0 ? x : $a * (exp(x) - (C)1)", 1, 0, true},
    {"softsign", "x / ((C)1 + fabs(x))"},
    {"softplus", "softplus(x)"},
};

// The functions f0, f1, … of a direction, each of which clips first unless it is the last of an LSTM.
std::vector<std::string> activation_texts(const ir::Node& node, Cell cell, int64_t directions) {
  const std::vector<std::string> defaults = cell == Cell::rnn   ? std::vector<std::string>{"Tanh"}
                                            : cell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                                : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  const size_t each = defaults.size(), wanted = each * static_cast<size_t>(directions);
  std::vector<std::string> names = node.strings_attribute("activations");
  for (int64_t d = 0; d < directions && names.size() < wanted; ++d) {
    if (names.size() != static_cast<size_t>(d) * each) break;
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() < wanted)
    fail(ErrorCode::invalid_attribute, "activations names {} functions; {} are needed", names.size(), wanted);
  const std::vector<float> alphas = node.floats_attribute("activation_alpha"),
                           betas = node.floats_attribute("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<std::string> texts(static_cast<size_t>(directions));
  for (size_t i = 0; i < wanted; ++i) {
    std::string lower = names[i];
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* found = std::ranges::find_if(activations, [&](const Activation& a) { return lower == a.name; });
    if (found == std::end(activations))
      fail(ErrorCode::invalid_attribute,
           "'{}' is none of the activations Sigmoid, Tanh, Relu, Affine, LeakyRelu, ThresholdedRelu, "
           "ScaledTanh, HardSigmoid, Elu, Softsign and Softplus",
           names[i]);
    float alpha = found->alpha, beta = found->beta;
    if (found->takes_alpha && next_alpha < alphas.size()) alpha = alphas[next_alpha++];
    if (found->takes_beta && next_beta < betas.size()) beta = betas[next_beta++];
    std::string expression = found->text;
    for (auto [mark, value] : {std::pair("$a", alpha), std::pair("$b", beta)}) {
      for (size_t at = expression.find(mark); at != std::string::npos; at = expression.find(mark))
        expression.replace(at, 2, "(C)" + cuda::number_text(static_cast<double>(value), ElementType::float64));
    }
    const bool clips = node.attribute("clip") && !(cell == Cell::lstm && i % each == 2);
    const std::string limit =
        "(C)" + cuda::number_text(static_cast<double>(node.float_attribute("clip", 0)), ElementType::float64);
    texts[i / each] += fmt::format("inline C f{}(C x) {{ {}return {}; }}\n", i % each,
                                   clips ? fmt::format("x = least(most(x, -{0}), {0}); ", limit) : "", expression);
  }
  return texts;
}

// What the kernels of a step share. States lie [batch, hidden] in the compute type C, and as T for the next product.
constexpr const char* step_text = R"(
#define LENGTH (lengths ? (i64)lengths[b] : v[2])
)";

struct Sizes {
  int64_t sequence, batch, input, hidden;
};

// All that follows from shapes. Sums are computed in float, or double; products take the tensors' own type.
struct RecurrentPlan {
  struct Direction {
    std::optional<CudaLoop> start, add_bias, cell, reset, finish;
  };
  std::vector<Direction> directions;
  std::optional<CudaStridedCopy> swap;  // x [batch, sequence, …] as [sequence, batch, …]
  std::optional<cuda::Gemm> input, recurrent, candidate;
  std::shared_ptr<void> memory;
  // Parts of the memory, in bytes.
  int64_t x = 0, gates = 0, h = 0, h_narrow = 0, c = 0, extra = 0, extra_narrow = 0;
};

class Recurrent final : public Kernel {
 public:
  Recurrent(const NodeInfo& info, Cell cell)
      : cell_(cell),
        gates_(cell == Cell::rnn   ? 1
               : cell == Cell::gru ? 3
                                   : 4),
        batch_first_(info.node().int_attribute("layout", 0) != 0),
        input_forget_(info.node().int_attribute("input_forget", 0) != 0),
        linear_before_reset_(info.node().int_attribute("linear_before_reset", 0) != 0) {
    const std::string direction = info.node().string_attribute("direction", "forward");
    directions_ = direction == "bidirectional" ? 2 : 1;
    reverse_first_ = direction == "reverse";
    functions_ = activation_texts(info.node(), cell, directions_);
  }

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    const Sizes n{shape[batch_first_ ? 1 : 0], shape[batch_first_ ? 0 : 1], shape[2], run.input(2).dim(2)};
    if (n.batch == 0 || n.hidden == 0) return;
    const auto& plan = run.per_plan<RecurrentPlan>([&] { return prepare(run, n); });
    for (int64_t d = 0; d < directions_; ++d) run_direction(run, plan, n, d);
  }

 private:
  std::string types_text(ElementType type) const {
    return fmt::format("typedef {} T; typedef Wide<T> C;\n", cuda::type_text(type));
  }

  RecurrentPlan prepare(KernelRun& run, const Sizes& n) const {
    const Tensor& x = run.input(0);
    const ElementType type = x.type(), wide = type == ElementType::float64 ? type : ElementType::float32;
    const int64_t narrow_bytes = bits_of(type) / 8, wide_bytes = bits_of(wide) / 8, rows = gates_ * n.hidden;
    const bool is_narrow = type != wide;
    RecurrentPlan plan;
    int64_t bytes = 0;
    auto reserve = [&](int64_t& place, int64_t elements, int64_t each) {
      place = bytes;
      bytes += (elements * each + 255) / 256 * 256;
    };
    if (batch_first_) reserve(plan.x, x.elements(), narrow_bytes);
    reserve(plan.gates, n.sequence * n.batch * rows, wide_bytes);
    reserve(plan.h, n.batch * n.hidden, wide_bytes);
    plan.h_narrow = plan.h;
    if (is_narrow) reserve(plan.h_narrow, n.batch * n.hidden, narrow_bytes);
    if (cell_ == Cell::lstm) reserve(plan.c, n.batch * n.hidden, wide_bytes);
    if (cell_ == Cell::gru) {
      reserve(plan.extra, n.batch * n.hidden, wide_bytes);
      plan.extra_narrow = plan.extra;
      if (is_narrow) reserve(plan.extra_narrow, n.batch * n.hidden, narrow_bytes);
    }
    plan.memory = queue_of(run).allocate(bytes);
    if (batch_first_ && x.elements() > 0) {
      const int64_t from[] = {n.input, n.sequence * n.input, 1};
      const Shape moved{n.sequence, n.batch, n.input};
      plan.swap.emplace(run, type, moved, from, steps_of(moved));
    }
    auto product = [&](int64_t m, int64_t columns, int64_t k, int64_t y_row, double beta) {
      cuda::GemmShape s;
      s.type = type;
      s.output = wide;
      s.m = m;
      s.n = columns;
      s.k = k;
      s.transpose_b = true;
      s.a_row = s.b_row = k;
      s.y_row = y_row;
      s.beta = beta;
      return cuda::Gemm(queue_of(run), s);
    };
    const int64_t first = cell_ == Cell::gru ? 2 * n.hidden : rows;
    if (n.sequence > 0) {
      if (n.input > 0) plan.input.emplace(product(n.sequence * n.batch, rows, n.input, rows, 0));
      plan.recurrent.emplace(product(n.batch, first, n.hidden, rows, 1));
      if (cell_ == Cell::gru)
        plan.candidate.emplace(linear_before_reset_ ? product(n.batch, n.hidden, n.hidden, n.hidden, 0)
                                                    : product(n.batch, n.hidden, n.hidden, rows, 1));
    }
    for (int64_t d = 0; d < directions_; ++d) plan.directions.push_back(prepare_direction(run, n, d, type, is_narrow));
    return plan;
  }

  // v: hidden, batch, sequence, then what a kernel needs.
  RecurrentPlan::Direction prepare_direction(KernelRun& run, const Sizes& n, int64_t d, ElementType type,
                                             bool is_narrow) const {
    const std::string functions = types_text(type) + functions_[static_cast<size_t>(d)] + step_text;
    const int64_t rows = gates_ * n.hidden;
    // Where the state of batch element b lies in initial_h, Y_h and the like.
    const std::string state_at = batch_first_ ? fmt::format("(b * {} + {}) * v[0] + j", directions_, d)
                                              : fmt::format("({} * v[1] + b) * v[0] + j", d);
    const std::string also_narrow = is_narrow ? "h_narrow[i] = narrow<T>(h[i]);" : "";
    const std::vector<int64_t> numbers{n.hidden, n.batch, n.sequence};
    const int64_t count = n.batch * n.hidden;
    RecurrentPlan::Direction made;
    made.start.emplace(
        run, count, "const T* initial_h, const T* initial_c, C* h, T* h_narrow, C* c",
        fmt::format("const i64 b = i / v[0], j = i % v[0];\n    h[i] = initial_h ? widen(initial_h[{0}]) : (C)0;\n    "
                    "{1}\n    if (c) c[i] = initial_c ? widen(initial_c[{0}]) : (C)0;",
                    state_at, also_narrow),
        numbers, functions);
    made.finish.emplace(
        run, count, "const C* h, const C* c, T* y_h, T* y_c",
        fmt::format("const i64 b = i / v[0], j = i % v[0];\n    if (y_h) y_h[{0}] = narrow<T>(h[i]);\n    "
                    "if (y_c) y_c[{0}] = narrow<T>(c[i]);",
                    state_at),
        numbers, functions);
    // Both biases at once, but that of the gate h of a GRU where it is added before the reset. Without an input, there
    // is nothing yet to add to.
    const bool later = cell_ == Cell::gru && linear_before_reset_;
    if (run.has_input(3) || n.input == 0)
      made.add_bias.emplace(
          run, n.sequence * n.batch * rows, "const T* bias, C* gates",
          fmt::format(
              "const i64 j = i % v[0];\n    C sum = {};\n    if (bias) sum += widen(bias[j]){};\n    gates[i] = sum;",
              n.input == 0 ? "0" : "gates[i]",
              later ? " + (j < v[1] ? widen(bias[v[0] + j]) : (C)0)" : " + widen(bias[v[0] + j])"),
          std::vector<int64_t>{rows, 2 * n.hidden}, functions);
    made.cell.emplace(run, count,
                      "const C* gates, const C* extra, const T* bias, const T* peephole, const int* lengths, C* h, T* "
                      "h_narrow, C* c, T* y, "
                      "const C* origin",
                      cell_text(also_narrow, d, run.has_input(3)), numbers, functions);
    if (cell_ == Cell::gru && !linear_before_reset_)
      made.reset.emplace(run, count, "const C* gates, const C* h, T* extra",
                         "const i64 b = i / v[0], j = i % v[0];\n    "
                         "extra[i] = narrow<T>(f0(gates[b * 3 * v[0] + v[0] + j]) * h[i]);",
                         numbers, functions);
    return made;
  }

  // One step of all elements. The step is known from where its gates lie.
  std::string cell_text(const std::string& also_narrow, int64_t d, bool has_bias) const {
    const std::string output_at = batch_first_ ? fmt::format("((b * v[2] + t) * {} + {}) * v[0] + j", directions_, d)
                                               : fmt::format("((t * {} + {}) * v[1] + b) * v[0] + j", directions_, d);
    std::string text = fmt::format(
        "const i64 b = i / v[0], j = i % v[0], t = (gates - origin) / (v[1] * v[0] * {0});\n    "
        "const i64 place = {1};\n    if (t >= LENGTH) {{\n      if (y) y[place] = narrow<T>((C)0);\n      continue;\n  "
        "  }}\n    "
        "const C* own = gates + b * v[0] * {0} + j;\n    ",
        gates_, output_at);
    if (cell_ == Cell::rnn) text += "const C state = f0(own[0]);\n    ";
    if (cell_ == Cell::gru) {
      text += "const C z = f0(own[0]), r = f0(own[v[0]]);\n    ";
      if (linear_before_reset_)
        text += fmt::format("const C candidate = f1(own[2 * v[0]] + r * (extra[i]{}));\n    ",
                            has_bias ? " + widen(bias[5 * v[0] + j])" : "");
      else
        text += "const C candidate = f1(own[2 * v[0]]);\n    ";
      text += "const C state = ((C)1 - z) * candidate + z * h[i];\n    ";
    }
    if (cell_ == Cell::lstm) {
      // Gates are in the order input, output, forget, cell; peepholes input, output, forget.
      text +=
          "C in = own[0], out = own[v[0]], forget = own[2 * v[0]];\n    "
          "if (peephole) { in += widen(peephole[j]) * c[i]; forget += widen(peephole[2 * v[0] + j]) * c[i]; }\n    in "
          "= f0(in);\n    ";
      text += input_forget_ ? "forget = (C)1 - in;\n    " : "forget = f0(forget);\n    ";
      text +=
          "const C kept = forget * c[i] + in * f1(own[3 * v[0]]);\n    c[i] = kept;\n    "
          "if (peephole) out += widen(peephole[v[0] + j]) * kept;\n    const C state = f0(out) * f2(kept);\n    ";
    }
    return text + fmt::format("h[i] = state;\n    {}\n    if (y) y[place] = narrow<T>(state);", also_narrow);
  }

  void run_direction(KernelRun& run, const RecurrentPlan& plan, const Sizes& n, int64_t d) const {
    cuda::GpuQueue& queue = queue_of(run);
    const ElementType type = run.input(0).type();
    const int64_t bytes = bits_of(type) / 8, wide_bytes = type == ElementType::float64 ? 8 : 4,
                  rows = gates_ * n.hidden;
    const RecurrentPlan::Direction& own = plan.directions[static_cast<size_t>(d)];
    auto part = [&](int64_t place) { return static_cast<std::byte*>(plan.memory.get()) + place; };
    auto input = [&](size_t i, int64_t first) -> const std::byte* {
      return run.has_input(i) ? static_cast<const std::byte*>(run.input(i).raw()) + first * bytes : nullptr;
    };
    auto output = [&](size_t i) -> void* { return run.wants_output(i) ? run.output(i).mutable_raw() : nullptr; };
    const bool is_lstm = cell_ == Cell::lstm;
    std::byte *gates = part(plan.gates), *h = part(plan.h), *h_narrow = part(plan.h_narrow), *extra = part(plan.extra),
              *extra_narrow = part(plan.extra_narrow);
    std::byte* c = is_lstm ? part(plan.c) : nullptr;
    const std::byte *w = input(1, d * rows * n.input), *r = input(2, d * rows * n.hidden),
                    *bias = input(3, d * 2 * rows), *peephole = is_lstm ? input(7, d * 3 * n.hidden) : nullptr;
    const void* x = run.input(0).raw();
    if (plan.swap) {
      if (d == 0) plan.swap->run(run, x, part(plan.x));
      x = part(plan.x);
    }
    own.start->run(run, {input(5, 0), is_lstm ? input(6, 0) : nullptr, h, h_narrow, c});
    if (plan.input) plan.input->run(queue, x, w, gates);
    if (own.add_bias) own.add_bias->run(run, {bias, gates});
    const void* lengths = run.has_input(4) ? run.input(4).raw() : nullptr;
    for (int64_t step = 0; step < n.sequence; ++step) {
      const int64_t t = reverse_first_ || d == 1 ? n.sequence - 1 - step : step;
      std::byte* now = gates + t * n.batch * rows * wide_bytes;
      plan.recurrent->run(queue, h_narrow, r, now);
      if (cell_ == Cell::gru) {
        const std::byte* candidate_weights = r + 2 * n.hidden * n.hidden * bytes;
        if (linear_before_reset_) {
          plan.candidate->run(queue, h_narrow, candidate_weights, extra);
        } else {
          own.reset->run(run, {now, h, extra_narrow});
          plan.candidate->run(queue, extra_narrow, candidate_weights, now + 2 * n.hidden * wide_bytes);
        }
      }
      own.cell->run(run, {now, extra, bias, peephole, lengths, h, h_narrow, c, output(0), gates});
    }
    own.finish->run(run, {h, c, output(1), is_lstm ? output(2) : nullptr});
  }

  Cell cell_;
  int64_t gates_, directions_ = 1;
  bool batch_first_, input_forget_, linear_before_reset_, reverse_first_ = false;
  std::vector<std::string> functions_;  // of each direction
};

}  // namespace

void cuda_recurrent(CudaKernels& list) {
  auto add = [&](const char* op, Cell cell) {
    list.add(op, [cell](const NodeInfo& info) { return std::make_unique<Recurrent>(info, cell); },
             {.types = types::floats | TypeSet{ElementType::int32}});
  };
  add("RNN", Cell::rnn);
  add("GRU", Cell::gru);
  add("LSTM", Cell::lstm);
}

}  // namespace tenon::ops
