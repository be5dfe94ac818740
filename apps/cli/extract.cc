#include "tenon/tools/extract.h"

#include "changed_model.h"

namespace tenon::cli {
namespace {

struct ExtractFlags {
  ModelFlags model;
  tools::ExtractOptions options;
};

int extract(const ExtractFlags& flags) {
  return write_changed(tools::extract(load_model(flags.model), flags.options), flags.model);
}

}  // namespace

void add_extract(CLI::App& program, Action& action) {
  auto flags = std::make_shared<ExtractFlags>();
  CLI::App* command = program.add_subcommand("extract", "Write the part of a model between values");
  flags->model.add_to(*command);
  command
      ->add_option("--inputs", flags->options.inputs,
                   "Values that become the inputs (default: those inputs that the outputs need)")
      ->delimiter(',')
      ->type_name("NAME,…");
  command->add_option("--outputs", flags->options.outputs, "Values that become the outputs (default: the model's)")
      ->delimiter(',')
      ->type_name("NAME,…");
  command->callback([flags, &action] { action = [flags] { return extract(*flags); }; });
}

}  // namespace tenon::cli
