#include "tenon/tools/fix.h"

#include "changed_model.h"

namespace tenon::cli {
namespace {

struct FixFlags {
  ModelFlags model;
  std::vector<std::string> sizes;
};

// Digits alone are the size of a dimension; a shape of rank 1 is written "5x".
int fix(const FixFlags& flags) {
  tools::FixOptions options;
  for (const auto& [name, size] : pairs(flags.sizes, "sizes")) {
    if (size.find_first_of("x,") == std::string::npos)
      options.dims[name] = parse_size(size);
    else
      options.shapes[name] = parse_shape(size);
  }
  return write_changed(tools::fix(load_model(flags.model), options), flags.model);
}

}  // namespace

void add_fix(CLI::App& program, Action& action) {
  auto flags = std::make_shared<FixFlags>();
  CLI::App* command = program.add_subcommand("fix", "Pin sizes of inputs, and write the shapes that follow");
  flags->model.add_to(*command);
  command
      ->add_option("sizes", flags->sizes,
                   "The shape of an input (x=1x3x224x224; 5x for one of rank 1), or the size of a dimension (batch=4)")
      ->required()
      ->type_name("NAME=SIZE");
  command->callback([flags, &action] { action = [flags] { return fix(*flags); }; });
}

}  // namespace tenon::cli
