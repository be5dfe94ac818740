#include "tenon/tools/rename.h"

#include "changed_model.h"

namespace tenon::cli {
namespace {

struct RenameFlags {
  ModelFlags model;
  std::vector<std::string> values, nodes, dims;
  tools::RenameOptions options;
};

int rename(const RenameFlags& flags) {
  tools::RenameOptions options = flags.options;
  options.values = pairs(flags.values, "new names");
  options.nodes = pairs(flags.nodes, "--node");
  options.dims = pairs(flags.dims, "--dim");
  return write_changed(tools::rename(load_model(flags.model), options), flags.model);
}

}  // namespace

void add_rename(CLI::App& program, Action& action) {
  auto flags = std::make_shared<RenameFlags>();
  CLI::App* command =
      program.add_subcommand("rename", "Give values (inputs and outputs too), nodes or dimensions other names");
  flags->model.add_to(*command);
  command
      ->add_option("names", flags->values,
                   "New names of values; one '*' in OLD stands for any text, which takes the place of the '*' in NEW")
      ->type_name("OLD=NEW");
  command->add_option("--node", flags->nodes, "New names of nodes")->type_name("OLD=NEW")->allow_extra_args(false);
  command->add_option("--dim", flags->dims, "New names of dimensions")->type_name("OLD=NEW")->allow_extra_args(false);
  command->add_option("--prefix", flags->options.prefix, "Put this in front of all other names of values and nodes")
      ->type_name("TEXT");
  command->add_flag("--keep-io", flags->options.keep_io, "With --prefix: leave the model's inputs and outputs");
  command->callback([flags, &action] { action = [flags] { return rename(*flags); }; });
}

}  // namespace tenon::cli
