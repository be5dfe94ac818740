#include "tools/check/target.h"

#include <algorithm>

#include "base/fail.h"

namespace tenon::tools {
namespace {

struct Provider {
  std::string_view target, name;
  std::vector<std::string_view> tables;  // by preference; each takes what those before it leave
};

// The tables of src/tools/targets that say what runs where.
const std::vector<Provider>& providers() {
  static const std::vector<Provider> list = {
      {"onnxruntime", "cpu", {"onnxruntime_cpu"}},
      {"onnxruntime", "cuda", {"onnxruntime_cuda", "onnxruntime_cpu"}},
      {"onnxruntime", "tensorrt", {"tensorrt", "onnxruntime_cuda", "onnxruntime_cpu"}},
      {"openvino", "cpu", {"openvino_cpu"}},
      {"tensorrt", "tensorrt", {"tensorrt"}},
  };
  return list;
}

std::string provider_of_table(std::string_view table) {
  const size_t at = table.find('_');
  return std::string(at == std::string_view::npos ? table : table.substr(at + 1));
}

[[noreturn]] void unknown_target(const std::string& text, const std::string& why) {
  std::string list;
  for (const std::string& line : known_targets()) list += "\n  " + line;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no target that is known: {}", text, why),
              "there are:" + list);
}

// What stands in for a release that a table does not have: the one before it, if there is one.
std::optional<size_t> nearest_before(const TargetFacts& facts, const std::vector<int>& version) {
  std::optional<size_t> nearest;
  for (size_t i = 0; i < facts.releases().size(); ++i) {
    if (facts.releases()[i].numbers <= version) nearest = i;
  }
  return nearest;
}

bool is_release(const Release& release, const std::vector<int>& version) {
  const size_t common = std::min(version.size(), release.numbers.size());
  return std::equal(version.begin(), version.begin() + static_cast<ptrdiff_t>(common), release.numbers.begin());
}

Target opset_target(const std::string& text, const std::string& version) {
  const auto numbers = version_numbers(version);
  if (!numbers || numbers->size() != 1 || (*numbers)[0] < 1) unknown_target(text, "an opset is a number");
  Target target;
  target.name = "opset " + version;
  target.basis = "the versions of operators that ONNX defines";
  target.limits.opset = (*numbers)[0];
  return target;
}

// Releases from before the measured ones: only their opset counts.
std::optional<Target> documented_target(const std::string& product, const std::string& version) {
  const TargetFacts* facts = TargetFacts::find(product + "_opsets");
  const std::optional<size_t> release = facts ? facts->release(version) : std::nullopt;
  if (!release) return std::nullopt;
  Target target;
  target.limits = facts->releases()[*release];
  target.name = fmt::format("{} {}", product, target.limits.version);
  target.basis = facts->source();
  return target;
}

}  // namespace

Target Target::parse(const std::string& text, const std::string& provider) {
  const size_t at = text.find("==");
  if (at == std::string::npos) unknown_target(text, "it is NAME==VERSION");
  const std::string product = text.substr(0, at), version = text.substr(at + 2);
  if (product == "opset") return opset_target(text, version);
  const bool known = std::ranges::any_of(providers(), [&](const Provider& p) { return p.target == product; });
  if (!known) unknown_target(text, fmt::format("nothing is known about '{}'", product));
  const std::string wanted = product == "onnxruntime" ? provider : product == "tensorrt" ? "tensorrt" : "cpu";
  auto found =
      std::ranges::find_if(providers(), [&](const Provider& p) { return p.target == product && p.name == wanted; });
  if (found == providers().end())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no provider '{}' that is known", product, wanted),
                "cpu, cuda and tensorrt are");
  const auto numbers = version_numbers(version);
  if (!numbers) unknown_target(text, fmt::format("'{}' is no version", version));

  Target target;
  for (std::string_view name : found->tables) {
    const TargetFacts* facts = TargetFacts::find(name);
    if (!facts) continue;
    const bool same_product = name.starts_with(product);
    std::optional<size_t> release = same_product ? facts->release(version) : facts->releases().size() - 1;
    if (!release) release = nearest_before(*facts, *numbers);
    if (!release) {
      if (std::optional<Target> older = documented_target(product, version)) return *older;
      if (name != found->tables.back()) continue;
      unknown_target(text, fmt::format("there are facts about {} to {}", facts->releases().front().version,
                                       facts->releases().back().version));
    }
    target.tables.push_back({provider_of_table(name), facts, *release});
    target.basis += (target.basis.empty() ? "" : "; ") + facts->source();
    if (same_product) target.limits = facts->releases()[*release];
  }
  target.name = fmt::format(
      "{} {}{}{}", product, target.limits.version, product == "onnxruntime" ? fmt::format(" ({})", provider) : "",
      is_release(target.limits, *numbers) ? "" : ", the nearest to " + version + " that is known");
  return target;
}

std::vector<std::string> known_targets() {
  std::vector<std::string> list;
  for (const Provider& provider : providers()) {
    const TargetFacts* facts = TargetFacts::find(provider.tables.front());
    const bool own = provider.tables.front().starts_with(provider.target);
    const TargetFacts* releases = own ? facts : TargetFacts::find(provider.tables.back());
    if (!facts || !releases) continue;
    list.push_back(fmt::format("{}=={} to {}{}", provider.target, releases->releases().front().version,
                               releases->releases().back().version,
                               provider.target == "onnxruntime" ? fmt::format(" (--provider {})", provider.name) : ""));
  }
  if (const TargetFacts* older = TargetFacts::find("onnxruntime_opsets"))
    list.push_back(fmt::format("onnxruntime=={} to {}, by their opset", older->releases().front().version,
                               older->releases().back().version));
  list.emplace_back("opset==1 and later");
  return list;
}

}  // namespace tenon::tools
