#include <algorithm>

#include "base/fail.h"
#include "ops/control_flow/cpu_stack.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

bool as_flag(const Value& value, std::string_view what) {
  const Tensor& tensor = value.tensor();
  if (tensor.elements() != 1)
    fail(ErrorCode::shape_mismatch, "{} must be one element, it has shape {}", what, tensor.shape().to_string());
  return tensor.data<bool>()[0];
}

void require_outputs(size_t given, size_t wanted, std::string_view graph) {
  if (given < wanted) fail(ErrorCode::invalid_model, "{} has {} outputs, {} are needed", graph, given, wanted);
}

void run_if(KernelRun& run) {
  const char* branch = as_flag(run.value(0), "the condition") ? "then_branch" : "else_branch";
  Subgraph& graph = run.subgraph(branch);
  require_outputs(graph.output_count(), run.output_count(), branch);
  graph.run();
  for (size_t i = 0; i < run.output_count(); ++i) run.set_output(i, graph.take_output(i));
}

// The types that inference found for the body's outputs.
const ir::Type& body_output_type(const KernelRun& run, size_t i) {
  return run.node().graph_attribute("body")->outputs()[i]->type;
}

// A loop whose body unwraps an optional gives out what it holds, even when it does not run.
Value unwrapped(Value value, const ir::Value* output) {
  bool wanted = output && output->type.known() && output->type.kind != ir::Type::Kind::optional;
  if (!wanted || !value.is_optional() || !value.optional().item) return value;
  return *value.optional().item;
}

// The number of the iteration. One that the body kept is not changed.
void give_number(const KernelRun& run, Subgraph& body, int64_t iteration) {
  Value number = body.take_input(0);
  if (!number.defined() || !number.tensor().sole_owner()) number = Tensor(ElementType::int64, Shape{}, run.allocator());
  number.tensor().mutable_data<int64_t>()[0] = iteration;
  body.give_input(0, std::move(number));
}

void run_loop(KernelRun& run) {
  Subgraph& body = run.subgraph("body");
  int64_t trips = INT64_MAX;
  if (run.has_input(0)) {
    const Tensor& count = run.input(0);
    if (count.elements() != 1)
      fail(ErrorCode::shape_mismatch, "the trip count must be one element, it has shape {}", count.shape().to_string());
    trips = count.data<int64_t>()[0];
  }
  bool checks_condition = run.has_input(1);
  bool going = !checks_condition || as_flag(run.value(1), "the condition");

  const size_t states = std::max<size_t>(run.input_count(), 2) - 2;
  require_outputs(body.output_count(), 1 + states, "the body");
  require_outputs(body.output_count() - 1, run.output_count(), "the body");
  std::vector<ScanOutput> collected;
  for (size_t i = states; i + 1 < body.output_count(); ++i) collected.emplace_back(i);

  if (!checks_condition) body.drop_output(0);
  if (body.reads_input(1)) body.give_input(1, Tensor(Shape{}, {true}));
  for (size_t i = 0; i < states; ++i) body.give_input(2 + i, run.value(2 + i));
  const bool reads_number = body.reads_input(0);
  for (int64_t iteration = 0; going && iteration < trips; ++iteration) {
    if (reads_number) give_number(run, body, iteration);
    body.run();
    if (checks_condition) going = as_flag(body.output(0), "the body's condition");
    for (size_t i = 0; i < collected.size(); ++i) {
      if (run.wants_output(states + i)) collected[i].add(run, body.output(1 + states + i));
    }
    body.carry(1, 2, states);
  }
  for (size_t i = 0; i < run.output_count(); ++i) {
    if (i < states)
      run.set_output(i, unwrapped(body.take_input(2 + i), run.node().output(i)));
    else if (run.wants_output(i))
      run.set_output(i, collected[i - states].join(run, 0, false, body_output_type(run, 1 + i)));
  }
}

class Scan final : public Kernel {
 public:
  explicit Scan(const NodeInfo& info)
      : scans_(static_cast<size_t>(info.node().int_attribute("num_scan_inputs", 0))),
        input_axes_(info.node().ints_attribute("scan_input_axes")),
        input_directions_(info.node().ints_attribute("scan_input_directions")),
        output_axes_(info.node().ints_attribute("scan_output_axes")),
        output_directions_(info.node().ints_attribute("scan_output_directions")) {}

  void run(KernelRun& run) const override {
    Subgraph& body = run.subgraph("body");
    size_t states = run.input_count() - scans_;
    require_outputs(body.output_count(), std::max(states, run.output_count()), "the body");
    std::vector<int> axes;
    int64_t length = -1;
    for (size_t i = 0; i < scans_; ++i) {
      const Tensor& scanned = run.input(states + i);
      int64_t axis = at(input_axes_, i);
      if (axis < 0) axis += scanned.rank();
      if (axis < 0 || axis >= scanned.rank())
        fail(ErrorCode::invalid_attribute, "axis {} of scan input {} is out of range for rank {}", axis, i,
             scanned.rank());
      axes.push_back(static_cast<int>(axis));
      int64_t own = scanned.dim(axes.back());
      if (length >= 0 && own != length)
        fail(ErrorCode::shape_mismatch, "scan inputs 0 and {} have lengths {} and {}", i, length, own);
      length = own;
    }
    for (size_t i = 0; i < states; ++i) body.give_input(i, run.value(i));
    std::vector<ScanOutput> collected;
    for (size_t i = states; i < body.output_count(); ++i) collected.emplace_back(i);
    for (int64_t t = 0; t < length; ++t) {
      for (size_t i = 0; i < scans_; ++i) {
        const int64_t at_t = at(input_directions_, i) ? length - 1 - t : t;
        body.give_input(states + i, slice_at(run, run.input(states + i), axes[i], at_t));
      }
      body.run();
      for (size_t i = 0; i < collected.size(); ++i) {
        if (run.wants_output(states + i)) collected[i].add(run, body.output(states + i));
      }
      body.carry(0, 0, states);
    }
    for (size_t i = 0; i < run.output_count(); ++i) {
      if (i < states) {
        run.set_output(i, body.take_input(i));
      } else if (run.wants_output(i)) {
        size_t k = i - states;
        run.set_output(
            i, collected[k].join(run, at(output_axes_, k), at(output_directions_, k) != 0, body_output_type(run, i)));
      }
    }
  }

 private:
  static int64_t at(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }

  size_t scans_;
  std::vector<int64_t> input_axes_, input_directions_, output_axes_, output_directions_;
};

}  // namespace

void cpu_control_flow(CpuKernels& list) {
  list.add_simple("If", run_if);
  list.add_simple("Loop", run_loop);
  list.add("Scan", [](const NodeInfo& info) { return std::make_unique<Scan>(info); });
}

}  // namespace tenon::ops
