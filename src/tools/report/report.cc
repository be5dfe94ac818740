#include "tenon/tools/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/cpu_feature_names.h"
#include "base/fail.h"
#include "base/index.h"
#include "session/shared_models.h"
#include "tenon/tools/inspect.h"
#include "tenon/tools/measure_machine.h"
#include "tenon/version.h"
#include "tools/report/blocks.h"
#include "tools/report/graph.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr size_t most_timeline_steps = 20000;

template <typename T>
Json or_null(bool is_known, const T& value) {
  return is_known ? Json(value) : Json(nullptr);
}

// A number, an expression over the model's sizes, or null.
Json estimate(const std::string& text) {
  if (text.empty()) return nullptr;
  if (text.find_first_not_of("0123456789") != std::string::npos) return text;
  return std::stod(text);
}

Json to_json(const std::vector<ValueInfo>& list) {
  Json json = Json::array();
  for (const ValueInfo& info : list)
    json.push_back({{"name", info.name}, {"type", info.type}, {"shape", or_null(info.has_shape, info.shape)}});
  return json;
}

Json model_json(const std::filesystem::path& path, const ModelSummary& summary, const Session& session) {
  Json opsets = Json::array(), metadata = Json::array();
  for (const auto& [domain, version] : summary.info.opsets)
    opsets.push_back({{"domain", domain.empty() ? "ai.onnx" : domain}, {"version", version}});
  for (const auto& [key, value] : summary.info.metadata) metadata.push_back({{"key", key}, {"value", value}});
  std::error_code ignored;
  return {{"file", path.filename().string()},
          {"file_bytes", std::filesystem::file_size(path, ignored)},
          {"graph", summary.info.graph_name},
          {"doc", summary.info.doc_string},
          {"graph_doc", summary.info.graph_doc_string},
          {"producer", summary.info.producer_name},
          {"producer_version", summary.info.producer_version},
          {"ir_version", summary.info.ir_version},
          {"opsets", opsets},
          {"metadata", metadata},
          {"nodes", summary.nodes},
          {"parameters", summary.parameters},
          {"parameter_bytes", summary.parameter_bytes},
          {"flops", estimate(summary.flops)},
          {"inputs", to_json(session.inputs())},
          {"outputs", to_json(session.outputs())}};
}

Json tensors_json(const ReportGraph& graph) {
  static constexpr const char* kinds[] = {"computed", "input", "weight"};
  Json list = Json::array();
  for (const ReportTensor& tensor : graph.tensors) {
    Json json = {{"name", tensor.value->name},
                 {"type", tensor.type},
                 {"bytes", or_null(tensor.bytes >= 0, tensor.bytes)},
                 {"kind", kinds[static_cast<size_t>(tensor.kind)]}};
    if (tensor.is_output) json["output"] = true;
    if (tensor.producer >= 0) json["producer"] = tensor.producer;
    list.push_back(std::move(json));
  }
  return list;
}

Json present(const std::vector<int>& tensors) {
  Json list = Json::array();
  for (int tensor : tensors) {
    if (tensor >= 0) list.push_back(tensor);
  }
  return list;
}

ElementType first_type(const std::vector<int>& tensors, const ReportGraph& graph) {
  for (int tensor : tensors) {
    if (tensor < 0) continue;
    const ir::Type& type = at(graph.tensors, tensor).value->type;
    if (type.is_tensor()) return type.element;
  }
  return ElementType::undefined;
}

// What a node computes with: what its kernel rounds to, 8-bit numbers that it reads, or what it makes.
std::string precision_of(const ReportNode& node, const ReportGraph& graph) {
  if (const std::string_view rounded = node.step->kernel->rounds_to(); !rounded.empty()) return std::string(rounded);
  const ElementType read = first_type(node.inputs, graph), made = first_type(node.outputs, graph);
  const bool is_quantized = read == ElementType::int8 || read == ElementType::uint8;
  const ElementType type = is_quantized ? read : made;
  return type == ElementType::undefined ? "other" : std::string(name_of(type));
}

Json nodes_json(const ReportGraph& graph, const PlacementReport& placement, double runs) {
  std::map<std::pair<std::string, std::string>, const NodePlacement*> placed;
  for (const NodePlacement& node : placement.nodes) placed[{node.node, node.op_type}] = &node;
  Json list = Json::array();
  for (const ReportNode& node : graph.nodes) {
    const ir::Node& inner = *node.step->node;
    Json json = {{"text", node.text},
                 {"name", inner.name.empty() && inner.origin ? inner.origin->name : inner.name},
                 {"op", inner.op_type},
                 {"provider", node.step->provider},
                 {"kernel", node.step->kernel_name},
                 {"precision", precision_of(node, graph)},
                 {"inputs", present(node.inputs)},
                 {"outputs", present(node.outputs)}};
    if (inner.origin && inner.origin->op_type != inner.op_type) json["was"] = inner.origin->op_type;
    if (!inner.doc_string.empty()) json["doc"] = inner.doc_string;
    if (node.owner >= 0) json["owner"] = node.owner;
    if (node.role == ReportNode::Role::known) json["idle"] = "known";
    if (node.role == ReportNode::Role::view) json["idle"] = "view";
    if (runs > 0) {
      json["calls"] = static_cast<double>(node.calls) / runs;
      json["seconds"] = node.seconds / runs;
      json["flops"] = node.flops / runs;
      json["bytes"] = node.bytes / runs;
    }
    auto found = placed.find({node.text, inner.op_type});
    if (found != placed.end()) {
      if (runs <= 0) {
        json["flops"] = estimate(found->second->flops);
        json["bytes"] = estimate(found->second->bytes);
      }
      for (const auto& [provider, reason] : found->second->declined)
        json["declined"].push_back({{"provider", provider}, {"reason", reason}});
    }
    list.push_back(std::move(json));
  }
  return list;
}

// The fastest run, step by step; bodies' steps too.
Json timeline_json(const std::vector<ProfiledRun>& runs, const ReportGraph& graph, std::vector<std::string>& notes) {
  const ProfiledRun& run = *std::ranges::min_element(runs, {}, &ProfiledRun::duration_ns);
  Json steps = Json::array();
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (const StepProfile& step : run.steps) {
    const int node = graph.find(step.node, step.op_type, seen[{step.node, step.op_type}]++);
    if (node < 0) continue;
    if (steps.size() == most_timeline_steps) {
      notes.push_back(fmt::format("the timeline has the first {} of {} steps", most_timeline_steps, run.steps.size()));
      break;
    }
    steps.push_back({node, static_cast<double>(step.start_ns - run.start_ns) * 1e-3,
                     static_cast<double>(step.duration_ns) * 1e-3, step.thread});
  }
  return {
      {"run", &run - runs.data() + 1}, {"microseconds", static_cast<double>(run.duration_ns) * 1e-3}, {"steps", steps}};
}

// What of the arena, and beside it, is in use while each step runs.
Json memory_json(const Plan& plan, const Program& program, const ReportGraph& graph) {
  std::vector<int> tensor_of(plan.slots.size(), -1), node_of_step;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ReportNode& node = graph.nodes[i];
    if (node.owner >= 0) continue;
    node_of_step.push_back(static_cast<int>(i));
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.step->outputs[o] >= 0) at(tensor_of, node.step->outputs[o]) = node.outputs[o];
    }
  }
  TENON_CHECK(node_of_step.size() == program.steps().size());
  Json steps = Json::array(), blocks = Json::array();
  for (const Plan::Item& item : plan.items) steps.push_back(at(node_of_step, item.step));
  for (const Plan::Block& block : plan.blocks) {
    const bool in_arena = block.home == Plan::Home::arena;
    if (!in_arena && block.home != Plan::Home::buffer) continue;
    std::vector<int> tensors;
    for (int slot : block.slots) tensors.push_back(at(tensor_of, slot));
    Json json = {
        {"first", block.first_step}, {"last", block.last_step}, {"bytes", block.bytes}, {"tensors", present(tensors)}};
    if (in_arena) json["offset"] = block.offset;
    blocks.push_back(std::move(json));
  }
  return {{"arena_bytes", plan.arena_bytes[0]},
          {"in_stages", !plan.side_by_side.empty()},
          {"steps", steps},
          {"blocks", blocks}};
}

Json rewrites_json(const std::vector<Rewrite>& rewrites) {
  Json list = Json::array();
  for (const Rewrite& rewrite : rewrites) {
    Json json = {{"pass", rewrite.pass}, {"before", rewrite.before}, {"after", rewrite.after}};
    for (const auto& [before, after] : rewrite.renamed) json["renamed"].push_back({before, after});
    list.push_back(std::move(json));
  }
  return list;
}

Json passes_json() {
  Json list = Json::object();
  for (const OptimizationPass& pass : optimization_passes())
    list[std::string(pass.name)] = {{"does", pass.does}, {"level", name_of(pass.level)}, {"exact", pass.exact}};
  return list;
}

Json placement_json(const PlacementReport& report) {
  Json providers = Json::array(), copies = Json::array();
  for (const ProviderTotals& totals : report.providers) {
    providers.push_back({{"provider", totals.provider},
                         {"nodes", totals.nodes},
                         {"flops", estimate(totals.flops)},
                         {"bytes", estimate(totals.bytes)},
                         {"unknown", totals.unknown}});
  }
  for (const ValueCopy& copy : report.copies)
    copies.push_back({{"tensor", copy.value}, {"from", copy.from}, {"to", copy.to}, {"bytes", estimate(copy.bytes)}});
  return {{"providers", providers}, {"copies", copies}, {"copied_bytes", estimate(report.copied_bytes)}};
}

// How far a tensor is off by its largest number; null if that is not known.
Json error_of(const Json& statistics) {
  auto number = [&](const char* key) { return statistics.contains(key) && statistics[key].is_number(); };
  if (!number("max_absolute") || !number("largest")) return nullptr;
  const double error = statistics["max_absolute"], size = statistics["largest"];
  return size > 0 ? error / size : error;
}

// What `tenon compare --json` printed, by tensor name; a tensor may have other names on its two sides.
Json errors_json(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("tensors") || !document["tensors"].is_array()) {
    throw Error(ErrorCode::invalid_argument, "the errors are no JSON document with a list \"tensors\"",
                "give what `tenon compare --json` printed");
  }
  Json errors = Json::object();
  for (const Json& tensor : document["tensors"]) {
    if (!tensor.is_object() || !tensor.contains("statistics") || !tensor["statistics"].is_object()) continue;
    Json entry = tensor["statistics"];
    entry["error"] = error_of(entry);
    if (tensor.contains("ok") && tensor["ok"].is_boolean()) entry["ok"] = tensor["ok"];
    for (const char* key : {"expected_name", "actual_name", "name"}) {
      if (tensor.contains(key) && tensor[key].is_string()) errors[tensor[key].get<std::string>()] = entry;
    }
  }
  return errors;
}

Json inputs_json(const MadeInputs& inputs, uint64_t seed) {
  Json given = Json::array();
  for (const auto& [name, value] : inputs.values) given.push_back({{"name", name}, {"value", value.describe()}});
  return {{"values", given}, {"random", inputs.random}, {"assumed", inputs.assumed}, {"seed", seed}};
}

std::string nodes_text(int64_t count) { return fmt::format("{} {}", count, count == 1 ? "node" : "nodes"); }

class Maker {
 public:
  Maker(const std::filesystem::path& path, const ReportOptions& options) : path_(path), options_(options) {}

  Report make() {
    tell("loading");
    const Clock::time_point start = Clock::now();
    const Session session = Session::load(path_, options_.session);
    const double load_seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const std::shared_ptr<const CompiledModel> model = shared_model(path_, options_.session, *ThreadPool::shared());
    const MadeInputs inputs =
        options_.values.empty() ? make_inputs(session, options_.inputs) : MadeInputs{options_.values, {}, {}};
    ReportGraph graph = read_graph(*model);
    const std::shared_ptr<const Plan> plan =
        plan_for(*model, inputs.values, options_.session.parallel_branches ? session.threads() : 1);
    take_plan(graph, model->program(), *plan);

    std::vector<ProfiledRun> runs;
    if (options_.run) {
      tell("running");
      take_sizes_of_run(graph, session, inputs.values);
      runs = profile(session, inputs.values,
                     {.runs = options_.runs, .warmup = options_.warmup, .progress = [&](int64_t) { tell("running"); }});
      take_times(graph, runs);
    }
    tell("drawing");
    const BlockPictures pictures = draw_blocks(graph, options_.own_layout);
    say_what_is_missing(graph, pictures, inputs);

    const PlacementReport placement = placement_for(session, inputs.values);
    Json json = {{"format", 1},
                 {"tenon", std::string(version())},
                 {"model", model_json(path_, inspect(path_, options_.session), session)},
                 {"session", session_json(session, load_seconds)},
                 {"inputs", inputs_json(inputs, options_.inputs.seed)},
                 {"machine", machine_json(session)},
                 {"runs", runs_json(runs)},
                 {"tensors", tensors_json(graph)},
                 {"nodes", nodes_json(graph, placement, static_cast<double>(runs.size()))},
                 {"blocks", *pictures.json},
                 {"memory", memory_json(*plan, model->program(), graph)},
                 {"placement", placement_json(placement)},
                 {"rewrites", rewrites_json(session.rewrites())},
                 {"passes", passes_json()}};
    if (!runs.empty()) json["timeline"] = timeline_json(runs, graph, notes_);
    if (!options_.errors.empty()) json["errors"] = errors_json(options_.errors);
    for (const std::string& note : session.notes()) notes_.push_back(note);
    json["notes"] = notes_;
    return {json.dump(-1, ' ', false, Json::error_handler_t::replace), notes_};
  }

 private:
  void tell(const char* what) {
    constexpr size_t stages = 4;
    const size_t total = stages + (options_.run ? static_cast<size_t>(options_.runs + options_.warmup) : 0);
    if (options_.progress) options_.progress(std::min(done_++, total), total, what);
  }

  void say_what_is_missing(const ReportGraph& graph, const BlockPictures& pictures, const MadeInputs& inputs) {
    if (!pictures.by_graphviz) {
      notes_.emplace_back(options_.own_layout
                              ? "the graph is laid out in simple rows, as was asked for"
                              : "the graph is laid out in simple rows: Graphviz's program 'dot' was not found (Debian: "
                                "apt-get install graphviz)");
    }
    auto count = [&](ReportNode::Role role) { return std::ranges::count(graph.nodes, role, &ReportNode::role); };
    const auto known = count(ReportNode::Role::known), views = count(ReportNode::Role::view);
    constexpr auto left_out = "the picture of the graph leaves out {} that no run executes: {}";
    if (known > 0)
      notes_.push_back(fmt::format(left_out, nodes_text(known), "shapes and weights alone decide what they make"));
    if (views > 0) {
      notes_.push_back(fmt::format(left_out, nodes_text(views),
                                   "they join tensors, take them apart or give them another shape, where they lie"));
    }
    if (!options_.run) notes_.emplace_back("the model was not run, so there are no times");
    if (!inputs.random.empty())
      notes_.push_back(fmt::format("inputs that were not given are random (seed {})", options_.inputs.seed));
    for (const std::string& dim : inputs.assumed) notes_.push_back(fmt::format("size '{}' was taken to be 1", dim));
  }

  Json session_json(const Session& session, double load_seconds) const {
    const SessionMemory memory = session.memory();
    return {{"threads", session.threads()},
            {"level", name_of(options_.session.level)},
            {"providers", options_.session.providers},
            {"precision", options_.session.precision == Precision::full ? "full" : "fast"},
            {"load_seconds", load_seconds},
            {"weight_bytes", memory.weights},
            {"peak_bytes", memory.peak}};
  }

  Json machine_json(const Session& session) {
    const CpuFeatures& cpu = cpu_features();
    Json json = {{"cpu", cpu.model}, {"features", feature_names(cpu)}};
    if (!options_.measure_peaks) return json;
    tell("measuring the machine");
    const MachineSpeed::Rates peaks = measure_machine(session.threads()).all;
    json["peaks"] = {{"threads", peaks.threads},
                     {"gflops", peaks.peak_flops * 1e-9},
                     {"product_gflops", peaks.matmul_flops * 1e-9},
                     {"memory_gbs", peaks.peak_bandwidth * 1e-9}};
    return json;
  }

  static Json runs_json(const std::vector<ProfiledRun>& runs) {
    Json list = Json::array();
    for (const ProfiledRun& run : runs) list.push_back(static_cast<double>(run.duration_ns) * 1e-9);
    return list;
  }

  const std::filesystem::path& path_;
  const ReportOptions& options_;
  std::vector<std::string> notes_;
  size_t done_ = 0;
};

}  // namespace

Report make_report(const std::filesystem::path& path, const ReportOptions& options) {
  return Maker(path, options).make();
}

}  // namespace tenon::tools
