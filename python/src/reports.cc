#include <charconv>

#include "bindings.h"
#include "record.h"
#include "tenon/tools/benchmark.h"
#include "tenon/tools/inspect.h"
#include "tenon/tools/operators.h"
#include "tenon/tools/optimize.h"
#include "tenon/tools/profile.h"

namespace tenon::python {
namespace {

// Numbers as numbers, unknown sizes as None, others as they are written.
nb::object size_of(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  if (auto [last, error] = std::from_chars(text.data(), end, number); error == std::errc() && last == end) {
    return nb::int_(number);
  }
  if (text == "?") return nb::none();
  return nb::str(text.data(), text.size());
}

nb::object declared_shape(const ValueInfo& info) {
  if (!info.has_shape) return nb::none();
  nb::list sizes;
  for (const std::string& size : info.shape) sizes.append(size_of(size));
  return nb::tuple(sizes);
}

nb::object declared_dtype(const ValueInfo& info) {
  if (info.element == ElementType::undefined) return nb::none();
  const std::string_view name = dtype_name(info.element);
  return nb::str(name.data(), name.size());
}

void bind_model_reports(nb::module_& module) {
  Record<ValueInfo>(module, "ValueInfo", "An input or output of a model.")
      .field("name", &ValueInfo::name)
      .field("type", &ValueInfo::type, "As ONNX writes it: ``'tensor(float)'``, ``'seq(tensor(int64))'``.")
      .computed("dtype", &declared_dtype, "The element type of a tensor, by NumPy's or ml_dtypes' name; else None.",
                "def dtype(self) -> str | None")
      .computed(
          "shape", &declared_shape,
          "Sizes as numbers, names or expressions (``3``, ``'batch'``, ``'2*seq'``), None where nothing is known;\n"
          "None where not even the rank is.",
          "def shape(self) -> tuple[int | str | None, ...] | None")
      .field("index_limit", &ValueInfo::index_limit,
             "Of an input whose elements are positions, as of tokens: they are below this. Else 0.");
  Record<ModelInfo>(module, "ModelInfo", "What a model says about itself.")
      .field("ir_version", &ModelInfo::ir_version)
      .field("opsets", &ModelInfo::opsets, "Domains with their versions.")
      .field("producer_name", &ModelInfo::producer_name)
      .field("producer_version", &ModelInfo::producer_version)
      .field("domain", &ModelInfo::domain)
      .field("graph_name", &ModelInfo::graph_name)
      .field("doc_string", &ModelInfo::doc_string)
      .field("graph_doc_string", &ModelInfo::graph_doc_string)
      .field("model_version", &ModelInfo::model_version)
      .field("metadata", &ModelInfo::metadata);
  Record<NodePlacement>(module, "NodePlacement", "Where a node runs, and why there.")
      .field("node", &NodePlacement::node, "Such as ``Conv 'stem' (node 0)``.")
      .field("op_type", &NodePlacement::op_type, "After lifting to the newest operator set.")
      .field("provider", &NodePlacement::provider)
      .field("kernel", &NodePlacement::kernel)
      .field("declined", &NodePlacement::declined,
             "Who declined it, and why: providers asked before; `qdq` where quantization stayed a node of its own.")
      .field("flops", &NodePlacement::flops, "An estimate: a number, or an expression over the model's sizes.")
      .field("bytes", &NodePlacement::bytes, "An estimate, as flops.");
  Record<ValueCopy>(module, "ValueCopy", "A tensor that one provider makes and another one reads.")
      .field("value", &ValueCopy::value)
      .field("source", &ValueCopy::from, "The provider that makes it.")
      .field("target", &ValueCopy::to, "The provider that reads it.")
      .field("bytes", &ValueCopy::bytes);
  Record<ProviderTotals>(module, "ProviderTotals", "What the nodes of one provider cost together.")
      .field("provider", &ProviderTotals::provider)
      .field("nodes", &ProviderTotals::nodes)
      .field("flops", &ProviderTotals::flops)
      .field("bytes", &ProviderTotals::bytes)
      .field("unknown", &ProviderTotals::unknown, "Nodes that flops and bytes leave out.");
  Record<PlacementReport>(module, "PlacementReport", "Where the nodes of a model run, and what that costs.")
      .field("providers", &PlacementReport::providers)
      .field("copied_bytes", &PlacementReport::copied_bytes)
      .field("unknown_copies", &PlacementReport::unknown_copies)
      .field("nodes", &PlacementReport::nodes)
      .field("copies", &PlacementReport::copies);
  Record<SessionMemory>(module, "Memory", "Bytes of memory of a model.")
      .field("weights", &SessionMemory::weights, "Weights, in memory or mapped, and what kernels made of them.")
      .field("in_use", &SessionMemory::in_use, "By runs that go on, outputs not let go, and what is kept arranged.")
      .field("cached", &SessionMemory::cached, "Free, kept for later.")
      .field("peak", &SessionMemory::peak, "The most that was in use since loading or :meth:`Model.trim`.")
      .field("limit", &SessionMemory::limit, "What in_use may not exceed.");
  Record<Rewrite>(module, "Rewrite", "One change that a pass of the optimiser made.")
      .field("pass_name", &Rewrite::pass)
      .field("before", &Rewrite::before, "Nodes that are gone.")
      .field("after", &Rewrite::after, "Operators that took their place.")
      .field("renamed", &Rewrite::renamed, "Values that have another name now.")
      .computed(
          "blocked",
          [](const Rewrite& rewrite) {
            std::map<std::string, std::string> images;
            for (const Rewrite::BlockedImage& image : rewrite.blocked) images[image.from] = image.to;
            return images;
          },
          "Images that are in blocks of channels now, under another name.", "def blocked(self) -> dict[str, str]");
}

void bind_measurements(nb::module_& module) {
  Record<tools::Latency>(module, "Latency", "How long runs took, in seconds.")
      .field("runs", &tools::Latency::runs)
      .field("min", &tools::Latency::min)
      .field("mean", &tools::Latency::mean)
      .field("p50", &tools::Latency::p50)
      .field("p90", &tools::Latency::p90)
      .field("p95", &tools::Latency::p95)
      .field("p99", &tools::Latency::p99)
      .field("max", &tools::Latency::max);
  Record<tools::BenchResult>(module, "BenchResult", "What :meth:`Model.bench` measured.")
      .field("first_run", &tools::BenchResult::first_run, "Seconds of the first run, which plans for the shapes.")
      .field("latency", &tools::BenchResult::latency)
      .field("seconds", &tools::BenchResult::seconds)
      .field("throughput", &tools::BenchResult::throughput, "Runs per second.");
  Record<StepProfile>(module, "StepProfile", "One step of a run.")
      .field("node", &StepProfile::node)
      .field("op_type", &StepProfile::op_type)
      .field("provider", &StepProfile::provider)
      .field("kernel", &StepProfile::kernel)
      .field("start_ns", &StepProfile::start_ns)
      .field("duration_ns", &StepProfile::duration_ns)
      .field("device_ns", &StepProfile::device_ns)
      .field("inputs", &StepProfile::inputs)
      .field("outputs", &StepProfile::outputs)
      .field("flops", &StepProfile::flops)
      .field("bytes", &StepProfile::bytes);
  Record<tools::ProfiledRun>(module, "ProfiledRun", "One run with all its steps.")
      .field("start_ns", &tools::ProfiledRun::start_ns)
      .field("duration_ns", &tools::ProfiledRun::duration_ns)
      .field("steps", &tools::ProfiledRun::steps);
  Record<tools::ProfileTotals>(module, "ProfileTotals", "What an operator, or a node, did in all the runs.")
      .field("op_type", &tools::ProfileTotals::op_type)
      .field("provider", &tools::ProfileTotals::provider)
      .field("node", &tools::ProfileTotals::node)
      .field("kernel", &tools::ProfileTotals::kernel)
      .field("inputs", &tools::ProfileTotals::inputs)
      .field("outputs", &tools::ProfileTotals::outputs)
      .field("calls", &tools::ProfileTotals::calls)
      .field("seconds", &tools::ProfileTotals::seconds)
      .field("share", &tools::ProfileTotals::share)
      .field("device_seconds", &tools::ProfileTotals::device_seconds)
      .field("flops", &tools::ProfileTotals::flops)
      .field("bytes", &tools::ProfileTotals::bytes);
}

void bind_tool_reports(nb::module_& module) {
  Record<tools::OperatorUse>(module, "OperatorUse", "How often a model has an operator.")
      .field("name", &tools::OperatorUse::name)
      .field("count", &tools::OperatorUse::count)
      .field("known", &tools::OperatorUse::known);
  Record<tools::ModelSummary>(module, "ModelSummary", "What :func:`inspect` found in a model.")
      .field("info", &tools::ModelSummary::info)
      .field("inputs", &tools::ModelSummary::inputs)
      .field("outputs", &tools::ModelSummary::outputs)
      .field("overridable_initializers", &tools::ModelSummary::overridable_initializers)
      .field("operators", &tools::ModelSummary::operators)
      .field("functions", &tools::ModelSummary::functions)
      .field("nodes", &tools::ModelSummary::nodes)
      .field("parameters", &tools::ModelSummary::parameters)
      .field("parameter_bytes", &tools::ModelSummary::parameter_bytes)
      .field("dynamic_dims", &tools::ModelSummary::dynamic_dims)
      .field("flops", &tools::ModelSummary::flops)
      .field("problem", &tools::ModelSummary::problem, "What keeps the model from running; empty if nothing was found.")
      .field("notes", &tools::ModelSummary::notes);
  Record<tools::OperatorChange>(module, "OperatorChange", "How often an operator occurs before and after optimising.")
      .field("name", &tools::OperatorChange::name)
      .field("before", &tools::OperatorChange::before)
      .field("after", &tools::OperatorChange::after);
  Record<tools::VerifyFailure>(module, "VerifyFailure", "A pass that changed results by more than is allowed.")
      .field("pass_name", &tools::VerifyFailure::pass)
      .field("node", &tools::VerifyFailure::node)
      .field("tensor", &tools::VerifyFailure::tensor)
      .field("difference", &tools::VerifyFailure::difference);
  Record<tools::OperatorInfo>(module, "OperatorInfo", "What Tenon has of an operator.")
      .field("name", &tools::OperatorInfo::name)
      .field("domain", &tools::OperatorInfo::domain, "Empty for ai.onnx.")
      .field("versions", &tools::OperatorInfo::versions, "Those in which ONNX changed it.")
      .field("types", &tools::OperatorInfo::types, "Element types by type variable or parameter.")
      .field("providers", &tools::OperatorInfo::providers, "That have a kernel.")
      .field("retired", &tools::OperatorInfo::retired, "Whether it is lifted to another operator, so needs no kernel.")
      .field("decomposes", &tools::OperatorInfo::decomposes, "Whether it can run as smaller operators.");
  Record<OptimizationPass>(module, "OptimizationPass", "A pass of the optimiser.")
      .field("name", &OptimizationPass::name)
      .computed(
          "level", [](const OptimizationPass& pass) { return name_of(pass.level); }, "The first level that runs it.",
          "def level(self) -> str")
      .field("exact", &OptimizationPass::exact, "Whether results stay the same to the last bit.")
      .field("does", &OptimizationPass::does);
}

}  // namespace

void bind_reports(nb::module_& module) {
  bind_model_reports(module);
  bind_measurements(module);
  bind_tool_reports(module);
}

}  // namespace tenon::python
