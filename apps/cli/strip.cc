#include "tenon/tools/strip.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "changed_model.h"
#include "table.h"

namespace tenon::cli {
namespace {

struct StripFlags {
  std::string model, output;
  tools::StripOptions options;
  bool json = false;
};

int strip(const StripFlags& flags) {
  const tools::StrippedModel result = tools::strip(tools::OnnxModel::load(flags.model), flags.output, flags.options);
  int64_t bytes = 0;
  nlohmann::json tensors = nlohmann::json::array();
  for (const tools::StrippedTensor& tensor : result.tensors) {
    bytes += tensor.bytes;
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                       {"bytes", tensor.bytes},
                       {"hash", tensor.hash}});
  }
  if (flags.json) {
    fmt::print("{}\n", nlohmann::json({{"model", result.model.string()},
                                       {"weights", result.weights.string()},
                                       {"manifest", result.manifest.string()},
                                       {"hash", result.hash},
                                       {"bytes", bytes},
                                       {"tensors", tensors}})
                           .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return fine;
  }
  fmt::print("took out {}, {}, hash {}\n", count_text(static_cast<int64_t>(result.tensors.size()), "tensor"),
             size_text(bytes), result.hash);
  for (const auto& file : {result.model, result.weights, result.manifest}) fmt::print("wrote {}\n", file.string());
  return fine;
}

struct RestoreFlags {
  ModelFlags model;
  std::string weights;
};

int restore(const RestoreFlags& flags) {
  flags.model.output.require();
  return write_changed(tools::restore(flags.model.model, flags.weights), flags.model);
}

}  // namespace

void add_strip(CLI::App& program, Action& action) {
  auto flags = std::make_shared<StripFlags>();
  CLI::App* command = program.add_subcommand("strip", "Take the weights out of a model, into a file of their own");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command->add_option("-o,--output", flags->output, "The model without weights")->required()->type_name("OUT");
  command
      ->add_option("--weights", flags->options.weights_file,
                   "The name of the file for the weights, beside OUT (default: OUT.weights); NAME.json lists them")
      ->type_name("NAME");
  command->add_option("--from", flags->options.from_bytes, "Take tensors of so many bytes or more (default: 1024)")
      ->type_name("BYTES");
  command->add_flag("--force", flags->options.overwrite, "Overwrite files that the model is read from");
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return strip(*flags); }; });
}

void add_restore(CLI::App& program, Action& action) {
  auto flags = std::make_shared<RestoreFlags>();
  CLI::App* command =
      program.add_subcommand("restore", "Put weights back that `tenon strip` took out, if they are the same");
  flags->model.add_to(*command);
  command->add_option("--weights", flags->weights, "The file with the weights (default: beside the model)")
      ->type_name("FILE");
  command->callback([flags, &action] { action = [flags] { return restore(*flags); }; });
}

}  // namespace tenon::cli
