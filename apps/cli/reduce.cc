#include "tenon/tools/reduce.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "table.h"
#include "tenon/tools/value_files.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

struct ReduceFlags {
  std::string model, check, out;
  InputFlags inputs;
  std::vector<std::string> libraries;
  bool force = false, json = false;
};

// 'it'"'"'s' in single quotes, for a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "'\"'\"'" : std::string(1, c);
  return result + "'";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// Writes a model with its inputs, and returns what to give a command to run it on them.
std::string write(const fs::path& folder, const tools::OnnxModel& model, const NamedValues& inputs) {
  fs::create_directories(folder);
  tools::SaveOptions options;
  options.overwrite = true;
  model.save(folder / "model.onnx", options);
  std::string arguments;
  for (const auto& [name, value] : inputs) {
    if (!value.is_tensor()) continue;
    const fs::path file = folder / fmt::format("input_{}.npy", tools::file_name_for(name));
    tools::write_npy(file, value.tensor());
    arguments += fmt::format("{}--input {}", arguments.empty() ? "" : " ", quoted(name + "=" + file.string()));
  }
  return arguments;
}

// The exit code of a command for a shell.
int run_check(const std::string& check, const fs::path& folder, const std::string& inputs, bool quiet) {
  std::string command = replaced(check, "{model}", quoted((folder / "model.onnx").string()));
  command = replaced(command, "{inputs}", inputs);
  command = replaced(command, "{folder}", quoted(folder.string()));
  if (quiet) command = "{ " + command + "\n} > /dev/null 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int reduce(const ReduceFlags& flags) {
  const fs::path out = flags.out;
  if (fs::exists(out) && !flags.force)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is there already", flags.out), "--force replaces it");
  const tools::OnnxModel model = tools::OnnxModel::load(flags.model);
  const fs::path trial = out.string() + ".trial";
  std::optional<int> wanted;  // what the whole model makes the check say
  tools::ReduceOptions options;
  options.inputs = flags.inputs.sources();
  options.session.custom_operator_libraries.assign(flags.libraries.begin(), flags.libraries.end());
  options.shows = [&](const tools::OnnxModel& part, const NamedValues& inputs) {
    const int code = run_check(flags.check, trial, write(trial, part, inputs), /*quiet=*/true);
    if (!wanted) wanted = code;
    return code != 0 && code == *wanted;
  };
  std::optional<Progress> progress;
  options.progress = [&](int64_t tried, int64_t nodes) {
    if (!progress) progress.emplace(static_cast<size_t>(nodes) + 1);
    progress->at(1, fmt::format("{} tried, {} left", count_text(tried, "model"), count_text(nodes, "node")));
  };
  const auto done = [&] {
    try {
      return tools::reduce(model, options);
    } catch (...) {
      fs::remove_all(trial);
      throw;
    }
  }();
  fs::remove_all(trial);
  if (flags.force) fs::remove_all(out);
  write(out, done.model, done.inputs);
  if (flags.json) {
    const nlohmann::json json = {{"nodes_before", done.nodes_before},
                                 {"nodes_after", done.nodes_after},
                                 {"tried", done.tried},
                                 {"exit_code", *wanted},
                                 {"folder", flags.out},
                                 {"notes", done.notes}};
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return fine;
  }
  for (const std::string& note : done.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print("{} of {} left after {}; the check still ends with {}\nwrote {}: model.onnx and its inputs\n",
             count_text(done.nodes_after, "node"), done.nodes_before, count_text(done.tried, "trial"), *wanted,
             flags.out);
  return fine;
}

}  // namespace

void add_reduce(CLI::App& program, Action& action) {
  auto flags = std::make_shared<ReduceFlags>();
  CLI::App* command =
      program.add_subcommand("reduce", "Find the smallest part of a model that still makes a command fail");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command
      ->add_option(
          "--check", flags->check,
          "A shell command that fails for this model, and must go on to fail with the same exit code: {model} is "
          "the file, {inputs} are --input options for it, {folder} is where they are")
      ->required()
      ->type_name("COMMAND");
  command->add_option("-o,--output", flags->out, "The folder to write the model and its inputs to")
      ->required()
      ->type_name("FOLDER");
  command->add_flag("--force", flags->force, "Replace that folder");
  flags->inputs.add_to(*command);
  add_custom_operators(*command, flags->libraries);
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return reduce(*flags); }; });
}

}  // namespace tenon::cli
