// One step by itself: what its outputs will be, and running it where no plan has places for them.
#pragma once

#include "ops/inference.h"
#include "session/program.h"

namespace tenon {

// The type of a value that is there; the content too, if `with_content`.
ops::Fact fact_of(const Value& value, const ir::Type& declared, bool with_content = true);

// Types and shapes of the outputs. Returns whether all tensors among them have known shapes and the others are none.
// `content_read` receives which inputs' content the shapes depend on.
bool infer_step(const Step& step, std::span<const ops::Fact* const> inputs, std::span<ops::Fact> outputs,
                uint64_t* content_read = nullptr);

// Throws what is wrong when input i was never given a value.
[[noreturn]] void fail_without_value(const Step& step, size_t i);

// Where a step is run: where it was placed, or on the host, where its inputs then are.
enum class RunsWhere : uint8_t { as_placed, on_host };

// Runs the kernel and lets it allocate its outputs, which go to `outputs` (null: not wanted).
void run_alone(const Step& step, const RunState& state, std::span<const Value* const> inputs,
               std::span<Value* const> outputs, std::span<Subgraph* const> subgraphs,
               RunsWhere where = RunsWhere::as_placed);
// The same with outputs that were inferred already: where they go, and their types and shapes.
void run_inferred(const Step& step, const RunState& state, std::span<const Value* const> inputs,
                  std::span<KernelRun::Output> outputs, std::span<Subgraph* const> subgraphs,
                  RunsWhere where = RunsWhere::as_placed);

}  // namespace tenon
