#include "tenon/tools/merge.h"

#include "changed_model.h"

namespace tenon::cli {
namespace {

struct MergeFlags {
  ModelFlags model;
  std::string second;
  std::vector<std::string> map;
  tools::MergeOptions options;
};

int merge(const MergeFlags& flags) {
  tools::MergeOptions options = flags.options;
  options.map = pairs(flags.map, "--map");
  const auto first = load_model(flags.model), second = tools::OnnxModel::load(flags.second);
  return write_changed(tools::merge(first, second, options), flags.model);
}

}  // namespace

void add_merge(CLI::App& program, Action& action) {
  auto flags = std::make_shared<MergeFlags>();
  CLI::App* command =
      program.add_subcommand("merge", "Join two models: outputs of the first become inputs of the second");
  flags->model.add_to(*command);
  command->add_option("second", flags->second, "The second .onnx file")->required()->type_name("SECOND");
  command
      ->add_option(
          "--map", flags->map,
          "An output of the first model and the input of the second that it becomes; may be repeated (default: "
          "those of one name)")
      ->type_name("OUT=IN")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--first-prefix", flags->options.first_prefix, "In front of all names of the first model")
      ->type_name("TEXT");
  command->add_option("--second-prefix", flags->options.second_prefix, "In front of all names of the second")
      ->type_name("TEXT");
  command
      ->add_option("--clash-prefix", flags->options.clash_prefix,
                   "In front of names of the second that the first has too (default: second/)")
      ->type_name("TEXT");
  command->add_flag("--keep-joined", flags->options.keep_joined, "Joined outputs of the first stay outputs");
  command->callback([flags, &action] { action = [flags] { return merge(*flags); }; });
}

}  // namespace tenon::cli
