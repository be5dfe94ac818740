#include "session/step_run.h"

#include "base/fail.h"
#include "ops/check_types.h"

namespace tenon {

using ops::Fact;

Fact fact_of(const Value& value, const ir::Type& declared, bool with_content) {
  Fact fact;
  if (value.is_tensor()) {
    fact = Fact::of(value.tensor());
    if (!with_content) fact.constant = nullptr;
  } else {
    fact.type = declared;
  }
  return fact;
}

bool infer_step(const Step& step, std::span<const Fact* const> inputs, std::span<Fact> outputs,
                uint64_t* content_read) {
  // Kernels rely on the types. A model may leave them open, or declare what nothing could check when it was loaded.
  bool as_declared = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] && inputs[i]->type.is_tensor() && inputs[i]->type.element != step.input_types[i]) as_declared = false;
  }
  if (!as_declared) ops::check_input_types(*step.op, *step.node, inputs);
  ops::Inference inference(*step.node, inputs, outputs, nullptr, content_read != nullptr);
  if (step.op->infer_types) step.op->infer_types(inference);
  if (content_read) {
    *content_read = 0;
    for (size_t i = 0; i < inputs.size(); ++i) *content_read |= uint64_t{inference.has_read_content(i)} << (i & 63);
  }
  bool all_known = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    ir::Type& type = outputs[i].type;
    if (step.outputs[i] < 0) continue;
    if (type.element == ElementType::undefined) type.element = step.node->output(i)->type.element;
    bool known = type.is_tensor() && type.element != ElementType::undefined && type.shape;
    for (size_t axis = 0; known && axis < type.shape->size(); ++axis) known = (*type.shape)[axis].is_known();
    all_known &= known;
  }
  return all_known;
}

void fail_without_value(const Step& step, size_t i) {
  throw Error(ErrorCode::invalid_model,
              "it has no value: the graph's inputs are not all given by the node that runs it")
      .on_tensor(step.node->input(i)->name);
}

void run_alone(const Step& step, const RunState& state, std::span<const Value* const> inputs,
               std::span<Value* const> outputs, std::span<Subgraph* const> subgraphs, RunsWhere where) {
  SmallVector<Fact, 4> facts;
  SmallVector<const Fact*, 6> fact_pointers;
  facts.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_readable = where == RunsWhere::on_host || !step.device_inputs[i];
    if (inputs[i]) facts.push_back(fact_of(*inputs[i], step.node->input(i)->type, is_readable));
    fact_pointers.push_back(inputs[i] ? &facts.back() : nullptr);
  }
  SmallVector<Fact, 2> inferred(outputs.size());
  infer_step(step, {fact_pointers.data(), fact_pointers.size()}, {inferred.data(), inferred.size()});
  SmallVector<KernelRun::Output, 2> places(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    places[i].value = outputs[i];
    places[i].element = inferred[i].type.element;
    if (inferred[i].type.shape) places[i].shape = concrete(*inferred[i].type.shape);
  }
  run_inferred(step, state, inputs, {places.data(), places.size()}, subgraphs, where);
}

void run_inferred(const Step& step, const RunState& state, std::span<const Value* const> inputs,
                  std::span<KernelRun::Output> outputs, std::span<Subgraph* const> subgraphs, RunsWhere where) {
  const bool on_device = step.on_device && where == RunsWhere::as_placed;
  Allocator& allocator = on_device ? *state.queue : state.allocator;
  const Kernel& kernel = step.on_device && !on_device ? *step.host_kernel : *step.kernel;
  KernelRun run(*step.node, inputs, outputs, subgraphs, state.threads, allocator, false);
  kernel.run(run);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const KernelRun::Output& output = outputs[i];
    if (!output.value || output.value->defined()) continue;
    // A kernel need not make what has no elements.
    TENON_CHECK(output.shape && output.shape->elements() == 0);
    run.output(i);
  }
}

}  // namespace tenon
