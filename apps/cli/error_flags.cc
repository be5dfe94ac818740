#include "error_flags.h"

#include <fmt/core.h>

namespace tenon::cli {
namespace {

double parse_number(const std::string& text, const std::string& option) {
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  if (number < 0 || used != text.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' is not a tolerance", option, text));
  return number;
}

}  // namespace

void ErrorFlags::add_to(CLI::App& command) {
  const char* group = "How much may differ";
  command
      .add_option("--rtol", tolerance.relative, "Allowed error, times the largest number of the tensor (default: 1e-3)")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command.add_option("--atol", tolerance.absolute, "Allowed error beside that (default: 1e-6)")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command
      .add_option(
          "--measure", measure,
          "What of a tensor's errors is held against it: max, mean, median, quantile, or elementwise, where --rtol "
          "is times each number (default: max)")
      ->type_name("MEASURE")
      ->group(group);
  command.add_option("--quantile", quantile, "For --measure quantile (default: 0.99)")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  command.add_option("--tolerance", patterns, "Another tolerance for tensors of such names; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATTERN=RTOL[,ATOL]")
      ->group(group);
}

tools::ErrorLimit ErrorFlags::limit() const { return {tools::error_measure(measure), quantile, tolerance}; }

std::vector<std::pair<std::string, tools::Tolerance>> ErrorFlags::tolerances() const {
  std::vector<std::pair<std::string, tools::Tolerance>> list;
  for (const std::string& text : patterns) {
    const size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("--tolerance takes PATTERN=RTOL[,ATOL], got '{}'", text));
    const std::string numbers = text.substr(at + 1);
    const size_t comma = numbers.find(',');
    tools::Tolerance other = tolerance;
    other.relative = parse_number(numbers.substr(0, comma), "--tolerance");
    if (comma != std::string::npos) other.absolute = parse_number(numbers.substr(comma + 1), "--tolerance");
    list.emplace_back(text.substr(0, at), other);
  }
  return list;
}

std::string ErrorFlags::text() const {
  const bool each = limit().measure == tools::ErrorMeasure::elementwise;
  return fmt::format("{} error at most {:g} times {}, plus {:g}", each ? "each" : measure, tolerance.relative,
                     each ? "its number" : "the largest number", tolerance.absolute);
}

}  // namespace tenon::cli
