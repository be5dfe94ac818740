#include "tenon/tools/prune.h"

#include "changed_model.h"

namespace tenon::cli {
namespace {

struct PruneFlags {
  ModelFlags model;
  tools::PruneOptions options;
};

int prune(const PruneFlags& flags) {
  return write_changed(tools::prune(load_model(flags.model), flags.options), flags.model);
}

}  // namespace

void add_prune(CLI::App& program, Action& action) {
  auto flags = std::make_shared<PruneFlags>();
  CLI::App* command = program.add_subcommand("prune", "Drop outputs, and all that only they need");
  flags->model.add_to(*command);
  command->add_option("--keep", flags->options.keep, "Outputs that stay; all others go")
      ->delimiter(',')
      ->type_name("NAME,…");
  command->add_option("--drop", flags->options.drop, "Outputs that go")->delimiter(',')->type_name("NAME,…");
  command->add_flag("--unused-inputs", flags->options.unused_inputs, "Drop inputs too that nothing needs");
  command->callback([flags, &action] { action = [flags] { return prune(*flags); }; });
}

}  // namespace tenon::cli
