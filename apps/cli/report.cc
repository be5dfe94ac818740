#include "tenon/tools/report.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "cli.h"
#include "table.h"

namespace tenon::cli {
namespace {

struct ReportFlags {
  std::string model, output = "report.html", errors;
  SessionFlags session;
  InputFlags inputs;
  tools::ReportOptions options;
  bool no_run = false, no_peaks = false, force = false, json = false;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::missing_file, fmt::format("'{}' cannot be read", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

// A report may take the place of another one, but of nothing else.
void check_may_write(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  constexpr std::string_view beginning = "<!doctype html>";
  std::string found(beginning.size(), '\0');
  if (!file || (file.read(found.data(), static_cast<std::streamsize>(found.size())), file.gcount() == 0)) return;
  if (found == beginning) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is there, and is no HTML page", path),
              "give another name, or --force to overwrite it");
}

int report(const ReportFlags& flags) {
  if (!flags.json && !flags.force) check_may_write(flags.output);
  tools::ReportOptions options = flags.options;
  options.session = flags.session.options();
  options.inputs = flags.inputs.sources();
  options.run = !flags.no_run;
  options.measure_peaks = !flags.no_peaks && options.run;
  if (!flags.errors.empty()) options.errors = content_of(flags.errors);
  tools::Report made;
  {
    std::optional<Progress> progress;
    options.progress = [&](size_t done, size_t total, const std::string& what) {
      if (!progress) progress.emplace(total);
      progress->at(done, what);
    };
    made = tools::make_report(flags.model, options);
  }
  if (flags.json) {
    fmt::print("{}\n", made.json);
    return fine;
  }
  for (const std::string& note : made.notes) fmt::print(stderr, "note: {}\n", note);
  tools::write_report(flags.output, made);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(flags.output));
  fmt::print("wrote {} ({}): open it in a browser\n", flags.output, size_text(bytes));
  return fine;
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = program.add_subcommand(
      "report", "Write one HTML page about a model: graph, time, memory, placement, weights, what the optimiser did");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command->add_option("-o,--output", flags->output, "The page to write (default: report.html)")->type_name("OUT.html");
  command->add_option("--runs", flags->options.runs, "Runs to measure (default: 10)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  command->add_option("--warmup", flags->options.warmup, "Runs before those (default: 3)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command->add_flag("--no-run", flags->no_run, "Do not run the model: structure, placement and memory plan only");
  command->add_flag("--no-peaks", flags->no_peaks, "Do not measure the machine for the roofline");
  command->add_option("--errors", flags->errors, "Errors by tensor, as `tenon compare --json` prints them")
      ->type_name("COMPARE.json");
  command->add_flag("--own-layout", flags->options.own_layout, "Lay the graph out without Graphviz");
  command->add_flag("--force", flags->force, "Overwrite a file that is no HTML page");
  command->add_flag("--json", flags->json, "Print what the page shows as one JSON document; write no page");
  flags->inputs.add_to(*command);
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return report(*flags); }; });
}

}  // namespace tenon::cli
