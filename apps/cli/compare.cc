#include "tenon/tools/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "error_flags.h"
#include "table.h"
#include "tenon/session_config.h"

namespace tenon::cli {
namespace {

// Options that say one word for both sides, or one for each.
struct PairOption {
  const char *name, *what, *type;
  void (*set)(SessionOptions& options, const std::string& word);
};

constexpr PairOption pair_options[] = {
    {"level", "Levels of optimisation (default: none,all)", "LEVEL,LEVEL",
     [](SessionOptions& options, const std::string& word) { options.level = optimization_level(word); }},
    {"precision", "full or fast", "P,P",
     [](SessionOptions& options, const std::string& word) { set_config(options, "tenon.precision", word); }},
    {"threads", "Threads to compute with", "N,N",
     [](SessionOptions& options, const std::string& word) { set_config(options, "tenon.threads", word); }},
    {"provider", "Providers ('a+cpu' is a, and cpu for what it declines)", "NAME,NAME",
     [](SessionOptions& options, const std::string& word) { options.providers = CLI::detail::split(word, '+'); }},
};

constexpr size_t provider_option = 3;

struct CompareFlags {
  std::string expected, actual, against, python = "python3";
  std::array<std::vector<std::string>, std::size(pair_options)> pairs;
  std::vector<std::string> only, libraries;
  InputFlags inputs;
  ErrorFlags errors;
  bool outputs_only = false, all = false, json = false, strict = false;

  bool has_pairs() const {
    return std::ranges::any_of(pairs, [](const auto& words) { return !words.empty(); });
  }
  bool has_device() const {
    return std::ranges::any_of(pairs[provider_option], [](const std::string& word) { return word != "cpu"; });
  }
};

tools::CompareSide side_of(const CompareFlags& flags, size_t side, const tools::OnnxModel& model,
                           const std::string& path, const std::string& usual_level) {
  SessionOptions options;
  options.level = optimization_level(usual_level);
  options.custom_operator_libraries.assign(flags.libraries.begin(), flags.libraries.end());
  std::string label = flags.pairs[0].empty() ? ", level " + usual_level : "";
  const auto word_of = [&](size_t i) {
    const std::vector<std::string>& words = flags.pairs[i];
    return words.empty() ? "" : words[std::min(side, words.size() - 1)];
  };
  for (size_t i = 0; i < flags.pairs.size(); ++i) {
    if (flags.pairs[i].empty()) continue;
    const std::string word = word_of(i);
    pair_options[i].set(options, word);
    label += fmt::format(", {} {}", pair_options[i].name, word);
  }
  // The other side may well be the CPU's.
  if (flags.strict && (word_of(provider_option) != "cpu" || !flags.has_device())) set_config(options, strict_key, "1");
  return tools::CompareSide::of(model, options, path + label);
}

std::string sqnr_text(double sqnr) {
  return std::isinf(sqnr) ? (sqnr > 0 ? "exact" : "–") : fmt::format("{:.1f}", sqnr);
}

std::string number_text(double number) { return number == 0 ? "0" : fmt::format("{:.2g}", number); }

void print_first(const tools::ComparedTensor& tensor) {
  fmt::print("\nfirst that differs: '{}', {}{}\n", tensor.name, tensor.type,
             tensor.node.empty() ? "" : ", of " + tensor.node);
  if (!tensor.problem.empty()) return fmt::print("  {}\n", tensor.problem);
  const tools::ErrorStatistics& s = tensor.verdict.statistics;
  fmt::print("  error {:.3g}, allowed {:.3g}; worst element {}: expected {:.7g}, got {:.7g}\n", tensor.verdict.error,
             tensor.verdict.limit, s.worst, s.worst_expected, s.worst_actual);
  if (s.unlike > 0)
    fmt::print("  NaN: {} expected, {} there; infinite: {} expected, {} there\n", s.expected_nans, s.nans,
               s.expected_infinities, s.infinities);
}

// Which rows to show: all, or those around the first that differs, the worst, and the outputs.
std::vector<size_t> rows_to_show(const tools::Comparison& comparison, bool all) {
  constexpr size_t most = 40, worst = 10;
  const size_t count = comparison.tensors.size();
  std::vector<size_t> rows;
  std::vector<size_t> by_error(count);
  for (size_t i = 0; i < count; ++i) by_error[i] = i;
  std::ranges::stable_sort(by_error, {}, [&](size_t i) { return comparison.tensors[i].verdict.statistics.sqnr; });
  by_error.resize(std::min(count, worst));
  for (size_t i = 0; i < count; ++i) {
    const bool is_near = comparison.first >= 0 && std::llabs(static_cast<long long>(i) - comparison.first) <= 3;
    const bool is_bad = std::ranges::find(by_error, i) != by_error.end();
    if (all || count <= most || is_near || is_bad || comparison.tensors[i].is_output) rows.push_back(i);
  }
  return rows;
}

void print_tensors(const tools::Comparison& comparison, bool all) {
  Table table;
  table.column("").column("tensor", Table::Align::left, 44).column("operator", Table::Align::left, 24);
  table.column("max abs").column("max rel").column("mean").column("cosine").column("SQNR dB").column("ULP");
  table.column("type", Table::Align::left);
  const std::vector<size_t> rows = rows_to_show(comparison, all);
  for (size_t i : rows) {
    const tools::ComparedTensor& tensor = comparison.tensors[i];
    const tools::ErrorStatistics& s = tensor.verdict.statistics;
    table.row({tensor.ok() ? "" : "✗", tensor.name, tensor.op_type, number_text(s.max_absolute),
               number_text(s.max_relative), number_text(s.mean_absolute), fmt::format("{:.6g}", s.cosine),
               sqnr_text(s.sqnr), number_text(s.max_ulps), tensor.problem.empty() ? tensor.type : tensor.problem});
  }
  fmt::print("\n");
  table.print();
  if (rows.size() < comparison.tensors.size())
    fmt::print("and {} more, which --all shows\n", comparison.tensors.size() - rows.size());
}

void print(const tools::Comparison& comparison, const CompareFlags& flags) {
  fmt::print("expected: {}\nactual:   {}\n", comparison.expected, comparison.actual);
  int64_t by_rewrite = 0, by_position = 0, wrong = 0;
  for (const tools::ComparedTensor& tensor : comparison.tensors) {
    by_rewrite += tensor.match == tools::ComparedTensor::Match::rewrite;
    by_position += tensor.match == tools::ComparedTensor::Match::position;
    wrong += !tensor.ok();
  }
  fmt::print("{} compared", count_text(static_cast<int64_t>(comparison.tensors.size()), "tensor"));
  if (by_rewrite > 0) fmt::print(", {} of them found by the optimiser's record", by_rewrite);
  if (by_position > 0) fmt::print(", {} by position and content", by_position);
  fmt::print("; {} of the first and {} of the second have no partner\n", comparison.only_expected.size(),
             comparison.only_actual.size());
  if (!comparison.ok()) print_first(comparison.tensors[static_cast<size_t>(comparison.first)]);
  print_tensors(comparison, flags.all);
  if (comparison.ok())
    fmt::print("\nall within the tolerance ({})\n", flags.errors.text());
  else
    fmt::print("\n{} beyond the tolerance ({})\n", count_text(wrong, "tensor"), flags.errors.text());
}

nlohmann::json number_json(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

nlohmann::json to_json(const tools::ComparedTensor& tensor) {
  const tools::ErrorStatistics& s = tensor.verdict.statistics;
  nlohmann::json json = {{"name", tensor.name},
                         {"expected_name", tensor.expected_name},
                         {"actual_name", tensor.actual_name},
                         {"node", tensor.node},
                         {"op_type", tensor.op_type},
                         {"type", tensor.type},
                         {"is_output", tensor.is_output},
                         {"match", std::string(name_of(tensor.match))},
                         {"ok", tensor.ok()}};
  if (!tensor.problem.empty()) {
    json["problem"] = tensor.problem;
    return json;
  }
  json["error"] = number_json(tensor.verdict.error);
  json["limit"] = number_json(tensor.verdict.limit);
  json["statistics"] = {{"elements", s.elements},
                        {"max_absolute", number_json(s.max_absolute)},
                        {"max_relative", number_json(s.max_relative)},
                        {"mean_absolute", number_json(s.mean_absolute)},
                        {"cosine", number_json(s.cosine)},
                        {"sqnr_db", number_json(s.sqnr)},
                        {"max_ulps", number_json(s.max_ulps)},
                        {"largest", number_json(s.largest)},
                        {"nans", s.nans},
                        {"infinities", s.infinities},
                        {"expected_nans", s.expected_nans},
                        {"expected_infinities", s.expected_infinities},
                        {"worst", s.worst}};
  return json;
}

nlohmann::json to_json(const tools::Comparison& comparison) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const tools::ComparedTensor& tensor : comparison.tensors) tensors.push_back(to_json(tensor));
  nlohmann::json json = {{"ok", comparison.ok()},
                         {"expected", comparison.expected},
                         {"actual", comparison.actual},
                         {"tensors", tensors},
                         {"only_expected", comparison.only_expected},
                         {"only_actual", comparison.only_actual},
                         {"random_inputs", comparison.random},
                         {"assumed_dims", comparison.assumed}};
  if (!comparison.ok()) json["first"] = comparison.tensors[static_cast<size_t>(comparison.first)].name;
  return json;
}

tools::CompareSide other_side(const CompareFlags& flags, const tools::OnnxModel& model, tools::InputSources& inputs) {
  if (flags.against != "onnxruntime") return tools::CompareSide::of_file(flags.against, model, inputs);
  const tools::CompareSide plain = side_of(flags, 0, model, flags.expected, "none");
  tools::MadeInputs made = tools::make_inputs(model.open(plain.session), inputs);
  inputs.values = made.values;
  return tools::CompareSide::of_onnxruntime(model, made.values, flags.python);
}

int compare(const CompareFlags& flags) {
  if (!flags.against.empty() && !flags.actual.empty())
    throw Error(ErrorCode::invalid_argument, "--against takes the place of a second model");
  const tools::OnnxModel model = tools::OnnxModel::load(flags.expected);
  tools::CompareOptions options;
  options.limit = flags.errors.limit();
  options.tolerances = flags.errors.tolerances();
  options.only = flags.only;
  options.outputs_only = flags.outputs_only;
  options.inputs = flags.inputs.sources();
  std::optional<tools::CompareSide> expected, actual;
  if (!flags.against.empty()) {
    expected = other_side(flags, model, options.inputs);
    actual = side_of(flags, 1, model, flags.expected, "all");
  } else {
    const bool two = !flags.actual.empty();
    expected = side_of(flags, 0, model, flags.expected, two || flags.has_pairs() ? "all" : "none");
    actual = side_of(flags, 1, two ? tools::OnnxModel::load(flags.actual) : model, two ? flags.actual : flags.expected,
                     "all");
  }
  Progress progress(2);
  size_t sides = 0;
  options.progress = [&](const std::string& what, double done) {
    sides += done == 1;
    progress.at(sides, what);
  };
  const tools::Comparison comparison = tools::compare(*expected, *actual, options);
  if (flags.json)
    fmt::print("{}\n", to_json(comparison).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    print(comparison, flags);
  return comparison.ok() ? fine : check_failed;
}

}  // namespace

void add_compare(CLI::App& program, Action& action) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = program.add_subcommand(
      "compare", "Compare two models, or one run in two ways, tensor by tensor, and find the first that differs");
  command->add_option("expected", flags->expected, "The model that is right")->required()->type_name("MODEL");
  command->add_option("actual", flags->actual, "Another that should compute the same (default: the same model)")
      ->type_name("MODEL");
  command
      ->add_option(
          "--against", flags->against,
          "What to compare with instead: onnxruntime, a .npz file, a folder that `tenon run --dump` wrote, or an "
          "ONNX test case")
      ->type_name("onnxruntime|FILE|FOLDER");
  for (size_t i = 0; i < std::size(pair_options); ++i) {
    const PairOption& option = pair_options[i];
    command
        ->add_option(fmt::format("--{}", option.name), flags->pairs[i],
                     fmt::format("{}; one, or two for the two sides", option.what))
        ->delimiter(',')
        ->expected(1, 2)
        ->type_name(option.type);
  }
  command->add_flag("--strict", flags->strict, strict_help);
  flags->errors.add_to(*command);
  command->add_option("--only", flags->only, "Tensors to look at; '*' is any text; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  command->add_flag("--outputs-only", flags->outputs_only, "Compare outputs, not what is between");
  command->add_flag("--all", flags->all, "Show every tensor");
  flags->inputs.add_to(*command);
  command->add_option("--python", flags->python, "The Python that has onnxruntime (default: python3)");
  add_custom_operators(*command, flags->libraries);
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return compare(*flags); }; });
}

}  // namespace tenon::cli
