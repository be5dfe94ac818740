#include "tenon/tools/dynamic.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "changed_model.h"

namespace tenon::cli {
namespace {

struct DynamicFlags {
  ModelFlags model;
  std::vector<std::string> dims, inputs, sizes;
  tools::DynamicOptions options;
};

int parse_axis(const std::string& text) {
  try {
    size_t used = 0;
    const int axis = std::stoi(text, &used);
    if (used == text.size()) return axis;
  } catch (const std::exception&) {
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not an axis", text));
}

// "0=batch", "x:0=batch"
tools::DynamicOptions options_of(const DynamicFlags& flags) {
  tools::DynamicOptions options = flags.options;
  options.axes.clear();
  std::string name;
  const auto take_name = [&](const std::string& text) {
    if (!name.empty() && name != text)
      throw Error(ErrorCode::invalid_argument, fmt::format("one size at a time: '{}' or '{}'", name, text));
    name = text;
  };
  for (const auto& [axis, text] : pairs(flags.dims, "--dim")) {
    take_name(text);
    options.axes.push_back({"", parse_axis(axis)});
  }
  for (const auto& [where, text] : pairs(flags.inputs, "--input")) {
    take_name(text);
    const size_t colon = where.rfind(':');
    if (colon == std::string::npos)
      throw Error(ErrorCode::invalid_argument, fmt::format("--input takes NAME:AXIS=SIZE, got '{}={}'", where, text));
    options.axes.push_back({where.substr(0, colon), parse_axis(where.substr(colon + 1))});
  }
  if (name.empty())
    throw Error(ErrorCode::invalid_argument, "no size is given", "give --dim 0=batch or --input x:0=batch");
  options.name = name;
  for (const auto& [dim, size] : pairs(flags.sizes, "--size")) options.sizes[dim] = parse_size(size);
  return options;
}

int report_blockers(const tools::DynamicModel& result, bool json) {
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const tools::DynamicBlocker& blocker : result.blockers)
      list.push_back({{"node", blocker.node}, {"constant", blocker.constant}, {"reason", blocker.reason}});
    nlohmann::json changes = nlohmann::json::array();
    for (const tools::ModelChange& change : result.changes)
      changes.push_back({{"kind", change.kind}, {"name", change.name}, {"detail", change.detail}});
    fmt::print("{}\n", nlohmann::json({{"blockers", list}, {"tried", changes}}).dump(2));
    return check_failed;
  }
  fmt::print("nothing was written: the size cannot be freed\n");
  for (const tools::DynamicBlocker& blocker : result.blockers) {
    fmt::print("  {}{}{}\n", blocker.node, blocker.constant.empty() ? "" : " '" + blocker.constant + "'",
               blocker.node.empty() && blocker.constant.empty() ? "" : ":");
    fmt::print("    {}\n", blocker.reason);
  }
  return check_failed;
}

int dynamic(const DynamicFlags& flags) {
  const tools::DynamicModel result = tools::make_dynamic(load_model(flags.model), options_of(flags));
  if (!result.model) return report_blockers(result, flags.model.json);
  const int code = write_changed({*result.model, result.changes, result.notes}, flags.model,
                                 {{"proven", result.proven}, {"largest_difference", result.largest_difference}});
  if (!flags.model.json)
    fmt::print("proven with 1, 2 and 3 rows: each is as the original's, the largest difference is {:.2g}\n",
               result.largest_difference);
  return code;
}

}  // namespace

void add_dynamic(CLI::App& program, Action& action) {
  auto flags = std::make_shared<DynamicFlags>();
  CLI::App* command =
      program.add_subcommand("dynamic", "Free a size that is baked into a model, such as the batch, and prove it");
  flags->model.add_to(*command);
  command->add_option("--dim", flags->dims, "An axis of all inputs, and the name of its size: 0=batch")
      ->type_name("AXIS=NAME")
      ->allow_extra_args(false);
  command->add_option("--input", flags->inputs, "The same for one input: x:0=batch; may be repeated")
      ->type_name("INPUT:AXIS=NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--size", flags->sizes, "The size of another named dimension in the runs that prove it (default: 5)")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  command->add_option("--seed", flags->options.seed, "Seed of the random inputs of these runs (default: 0)");
  command->add_option("--rtol", flags->options.tolerance,
                      "Allowed difference of rows, times the largest number of the output (default: 1e-4)");
  command->callback([flags, &action] { action = [flags] { return dynamic(*flags); }; });
}

}  // namespace tenon::cli
