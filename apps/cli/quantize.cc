#include "tenon/tools/quantize.h"

#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "output_flags.h"

namespace tenon::cli {
namespace {

struct QuantizeFlags {
  std::string model, calibration, evaluation, report, overrides, metric;
  std::string mode = "static", format = "qdq", range = "mse", weight_method = "round";
  std::string activations = "uint8", weights, max_loss = "1%";
  std::vector<float> mean = {0}, std = {1};
  double smooth = -1;
  std::string float_type;
  int64_t block_size = 32;
  bool per_tensor = false, asymmetric_weights = false, no_measure = false, json = false;
  tools::QuantizeOptions options;
  InputFlags inputs;
  OutputFlags output;
  int threads = 0;
};

// "0.5%", "0.005", "none"
std::optional<double> parse_loss(const std::string& text) {
  if (text == "none") return std::nullopt;
  size_t read = 0;
  double number = -1;
  try {
    number = std::stod(text, &read);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(std::min(read, text.size()));
  if (number < 0 || (!unit.empty() && unit != "%"))
    throw Error(ErrorCode::invalid_argument, fmt::format("--max-loss: '{}' is no share", text),
                "--max-loss 0.5%, --max-loss 0.005 or --max-loss none");
  return unit == "%" ? number / 100 : number;
}

// {"tensor": {"type": "uint16", "symmetric": true, "low": -1, "high": 1}}
std::map<std::string, tools::TensorOverride> read_overrides(const std::string& path) {
  std::map<std::string, tools::TensorOverride> overrides;
  if (path.empty()) return overrides;
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw Error(ErrorCode::invalid_argument, fmt::format("--overrides: '{}' is not a file with a JSON object", path),
                R"({"tensor": {"type": "uint16", "symmetric": true, "low": -1, "high": 1}})");
  for (const auto& [name, entry] : json.items()) {
    tools::TensorOverride& given = overrides[name];
    for (const auto& [key, value] : entry.items()) {
      if (key == "type" && value.is_string())
        given.type = tools::code_type(value.get<std::string>());
      else if (key == "symmetric" && value.is_boolean())
        given.symmetric = value.get<bool>();
      else if (key == "low" && value.is_number())
        given.low = value.get<double>();
      else if (key == "high" && value.is_number())
        given.high = value.get<double>();
      else
        throw Error(ErrorCode::invalid_argument, fmt::format("--overrides: '{}' of '{}' is not understood", key, name),
                    "type, symmetric, low and high are");
    }
  }
  return overrides;
}

// Runs the user's command on a model in a temporary file; its last line is a number.
double run_metric(const std::string& command, const tools::OnnxModel& model) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("tenon-metric-{}.onnx", getpid());
  model.save(path);
  const std::string line = fmt::format("{} '{}'", command, path.string());
  std::string text;
  FILE* pipe = popen(line.c_str(), "r");
  char buffer[4096];
  while (pipe && fgets(buffer, sizeof(buffer), pipe)) text = buffer;
  const int status = pipe ? pclose(pipe) : -1;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  try {
    if (status == 0) return std::stod(text);
  } catch (const std::exception&) {
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--metric: `{}` {}", command,
                          status == 0 ? "printed no number in its last line" : fmt::format("ended with {}", status)),
              "it is called with the path of a model, and prints how good it is: the larger, the better");
}

tools::QuantizeOptions options_of(const QuantizeFlags& flags) {
  tools::QuantizeOptions options = flags.options;
  options.mode = tools::quantize_mode(flags.mode);
  options.format = tools::quantize_format(flags.format);
  options.range = tools::range_method(flags.range);
  options.weight_method = tools::weight_method(flags.weight_method);
  options.activations = tools::code_type(flags.activations);
  const bool weight_only = options.mode == tools::QuantizeMode::weight_only;
  options.weights = tools::code_type(flags.weights.empty() ? (weight_only ? "int4" : "int8") : flags.weights);
  options.per_channel = !flags.per_tensor;
  options.symmetric_weights = !flags.asymmetric_weights;
  options.block_size = flags.block_size;
  options.measure = !flags.no_measure;
  if (flags.smooth >= 0) options.smooth = flags.smooth;
  if (!flags.float_type.empty()) options.float_type = tools::float_type(flags.float_type);
  options.overrides = read_overrides(flags.overrides);
  options.loss.most = parse_loss(flags.max_loss);
  if (!flags.metric.empty())
    options.loss.metric = [command = flags.metric](const tools::OnnxModel& model) {
      return run_metric(command, model);
    };
  options.session.threads = flags.threads;
  return options;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw Error(ErrorCode::write_failed, fmt::format("'{}' cannot be written", path));
}

int quantize(const QuantizeFlags& flags) {
  flags.output.require();
  tools::QuantizeOptions options = options_of(flags);
  const tools::OnnxModel model = tools::OnnxModel::load(flags.model);
  const std::vector<ValueInfo> inputs = model.open(options.session).inputs();
  const tools::PictureOptions pictures{flags.mean, flags.std};
  std::unique_ptr<tools::Samples> calibration, evaluation;
  if (!flags.calibration.empty()) calibration = tools::read_samples(flags.calibration, inputs, pictures);
  if (!flags.evaluation.empty()) evaluation = tools::read_samples(flags.evaluation, inputs, pictures);
  tools::QuantizeData data{calibration.get(), evaluation.get(), flags.inputs.sources()};
  Progress progress(1000);
  options.progress = [&](const std::string& what, double done) { progress.at(static_cast<size_t>(1000 * done), what); };
  const tools::QuantizeReport report = tools::quantize(model, options, data);
  const tools::SavedModel saved = flags.output.save(report.model);
  if (flags.report.ends_with(".html"))
    write_text(flags.report, tools::to_html(report, std::filesystem::path(flags.model).filename().string()));
  else if (!flags.report.empty())
    write_text(flags.report, flags.report.ends_with(".json") ? tools::to_json(report) : tools::to_text(report));
  if (flags.json) {
    nlohmann::json json = nlohmann::json::parse(tools::to_json(report));
    json["written"] = to_json(saved);
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return fine;
  }
  fmt::print("{}", tools::to_text(report));
  print(saved);
  return fine;
}

}  // namespace

void add_quantize(CLI::App& program, Action& action) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App* command = program.add_subcommand(
      "quantize", "Write a model that computes in integers: smaller and faster, within a budget");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  flags->output.add_to(*command);
  command
      ->add_option("--mode", flags->mode,
                   "static: weights and activations, ranges from calibration data (default); dynamic: ranges found in "
                   "every run; weight-only")
      ->type_name("MODE");
  command
      ->add_option("--calibration", flags->calibration,
                   "Data like that of production: .npz, .npy, or a folder of such files, pictures or test cases "
                   "(default: random numbers, which calibrate nothing)")
      ->type_name("DATA");
  command
      ->add_option("--evaluation", flags->evaluation,
                   "Data that the models are compared on (default: some of the calibration's)")
      ->type_name("DATA");
  command->add_option("--mean", flags->mean, "Of pictures: is taken off samples of 0 to 1, for all or each channel")
      ->delimiter(',');
  command->add_option("--std", flags->std, "Of pictures: samples are divided by it after that")->delimiter(',');

  const char* budget = "Budget";
  command
      ->add_option("--max-loss", flags->max_loss,
                   "Share of the outputs' power that their error may have, or of the metric that may be lost; nodes "
                   "stay float to hold it (default: 1%, which is 20 dB; none: no limit)")
      ->type_name("SHARE")
      ->group(budget);
  command
      ->add_option("--metric", flags->metric,
                   "A command that is called with a model's path and prints how good it is, the larger the better")
      ->type_name("COMMAND")
      ->group(budget);
  command
      ->add_flag("--no-measure", flags->no_measure,
                 "Take no times: what is slower in integers on this machine does not stay float")
      ->group(budget);

  const char* what = "What is quantized";
  command->add_option("--only", flags->options.only, "Only these nodes, by name or operator ('*' is any text)")
      ->delimiter(',')
      ->type_name("NODE,…")
      ->group(what);
  command->add_option("--keep-float", flags->options.keep, "Not these nodes")
      ->delimiter(',')
      ->type_name("NODE,…")
      ->group(what);
  command
      ->add_option("--overrides", flags->overrides,
                   "A JSON file of single tensors: {\"x\": {\"type\": \"uint16\", \"symmetric\": true, \"low\": -1, "
                   "\"high\": 1}}")
      ->type_name("FILE")
      ->group(what);

  const char* how = "How";
  command
      ->add_option("--format", flags->format,
                   "qdq: QuantizeLinear and DequantizeLinear (default); qoperator: QLinearConv and the like")
      ->type_name("FORMAT")
      ->group(how);
  command->add_option("--activations", flags->activations, "uint8 (default), int8, uint16 or int16")
      ->type_name("TYPE")
      ->group(how);
  command->add_option("--weights", flags->weights, "int8 (default), uint8; int4 (default for weight-only) or uint4")
      ->type_name("TYPE")
      ->group(how);
  command->add_flag("--per-tensor", flags->per_tensor, "One scale for a weight, not one for each channel")->group(how);
  command
      ->add_flag("--symmetric-activations", flags->options.symmetric_activations,
                 "0 is in the middle of the codes of activations")
      ->group(how);
  command
      ->add_flag("--asymmetric-weights", flags->asymmetric_weights, "0 need not be in the middle of those of weights")
      ->group(how);
  command
      ->add_option("--method", flags->range,
                   "How ranges follow from data: mse (default), minmax, moving-average, percentile or entropy")
      ->type_name("METHOD")
      ->group(how);
  command->add_option("--percentile", flags->options.percentile, "For --method percentile (default: 99.99)")
      ->group(how);
  command
      ->add_flag("--bias-correction", flags->options.bias_correction,
                 "Take what rounding the weights adds on average off the biases")
      ->group(how);
  command
      ->add_option("--smooth", flags->smooth,
                   "SmoothQuant: how much of the differences between channels goes from activations into weights, "
                   "0 to 1 (often 0.5)")
      ->check(CLI::Range(0.0, 1.0))
      ->group(how);
  command
      ->add_option(
          "--float-type", flags->float_type,
          "What stays float computes in float32 or float16 (default: in float16 where nodes stay float to hold "
          "the budget and this machine is faster so)")
      ->type_name("TYPE")
      ->group(how);
  command->add_option("--weight-method", flags->weight_method, "For weight-only: round (default) or gptq")
      ->type_name("METHOD")
      ->group(how);
  command
      ->add_option("--block-size", flags->block_size,
                   "For weight-only: how many weights share a scale (default: 32; 0: a whole column)")
      ->group(how);

  command->add_option("--threads", flags->threads, "Threads to compute with (default: one per CPU)")
      ->check(CLI::Range(1, 4096));
  flags->inputs.add_shapes_to(*command, "Random calibration data");
  command->add_option("--report", flags->report, "Write what was done to a file: .html, .json or text")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return quantize(*flags); }; });
}

}  // namespace tenon::cli
