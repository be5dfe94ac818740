#include "tenon/session_config.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/fail.h"
#include "base/names.h"
#include "session/providers.h"

namespace tenon {
namespace {

struct Entry {
  std::string_view key;
  std::string_view form;  // of its values
  // Says whether the value has that form.
  bool (*set)(SessionOptions& options, std::string_view value);
};

template <typename T>
bool parse(std::string_view text, T& number) {
  T parsed = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size() || parsed < 0) return false;
  number = parsed;
  return true;
}

bool parse_flag(std::string_view text, bool& flag) {
  flag = text == "1";
  return text == "0" || text == "1";
}

bool add_names(std::string_view text, std::vector<std::string>& names) {
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(";,"), text.size());
    if (end > 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

// What the others decline is then an error, which says why.
void leave_out_cpu(SessionOptions& options) {
  const auto is_cpu = [](const std::string& name) { return short_provider_name(name) == "cpu"; };
  if (std::ranges::all_of(options.providers, is_cpu)) {
    throw Error(ErrorCode::invalid_argument, "there is nothing to be strict about: no provider but 'cpu' is asked for",
                "ask for the one that has to run every node, such as 'cuda'");
  }
  std::erase_if(options.providers, is_cpu);
  options.allow_fallback = false;
}

constexpr std::string_view flag = "0 or 1", number = "a number that is not negative", names = "names separated by ';'";

const Entry entries[] = {
    {"optimization.disable_specified_optimizers", names,
     [](SessionOptions& o, std::string_view v) { return add_names(v, o.disabled_passes); }},
    {"session.intra_op.allow_spinning", flag,
     [](SessionOptions& o, std::string_view v) {
       bool spins = true;
       if (!parse_flag(v, spins)) return false;
       if (!spins) o.spin_microseconds = 0;
       return true;
     }},
    {"session.intra_op.spin_duration_us", number,
     [](SessionOptions& o, std::string_view v) { return parse(v, o.spin_microseconds); }},
    {"session.set_denormal_as_zero", flag,
     [](SessionOptions& o, std::string_view v) { return parse_flag(v, o.flush_denormals); }},
    {"session.disable_cpu_ep_fallback", flag,
     [](SessionOptions& o, std::string_view v) {
       bool is_strict = false;
       if (!parse_flag(v, is_strict)) return false;
       if (is_strict)
         leave_out_cpu(o);
       else
         o.allow_fallback = true;
       return true;
     }},
    // Of that processor alone, as its name says.
    {"mlas.enable_gemm_fastmath_arm64_bfloat16", flag,
     [](SessionOptions& o, std::string_view v) {
       bool is_on = false;
       if (!parse_flag(v, is_on)) return false;
#if defined(__aarch64__)
       if (is_on) o.precision = Precision::fast;
#else
       static_cast<void>(o);
#endif
       return true;
     }},
    {"tenon.level", "none, exact, basic, extended or all",
     [](SessionOptions& o, std::string_view v) {
       o.level = optimization_level(v);
       return true;
     }},
    {"tenon.threads", number, [](SessionOptions& o, std::string_view v) { return parse(v, o.threads); }},
    {"tenon.parallel_branches", flag,
     [](SessionOptions& o, std::string_view v) { return parse_flag(v, o.parallel_branches); }},
    {"tenon.memory", "normal or low",
     [](SessionOptions& o, std::string_view v) {
       o.memory = v == "low" ? MemoryUse::low : MemoryUse::normal;
       return v == "low" || v == "normal";
     }},
    {"tenon.precision", "full or fast",
     [](SessionOptions& o, std::string_view v) {
       o.precision = v == "fast" ? Precision::fast : Precision::full;
       return v == "full" || v == "fast";
     }},
    {"tenon.memory_limit", number, [](SessionOptions& o, std::string_view v) { return parse(v, o.memory_limit); }},
    {"tenon.decompose", names, [](SessionOptions& o, std::string_view v) { return add_names(v, o.decompose); }},
    {"tenon.keep", names, [](SessionOptions& o, std::string_view v) { return add_names(v, o.keep); }},
    {"tenon.trust_size_names", flag,
     [](SessionOptions& o, std::string_view v) { return parse_flag(v, o.trust_size_names); }},
};

}  // namespace

std::vector<std::string_view> config_keys() {
  std::vector<std::string_view> keys;
  for (const Entry& entry : entries) keys.push_back(entry.key);
  return keys;
}

void set_config(SessionOptions& options, std::string_view key, std::string_view value) {
  for (const Entry& entry : entries) {
    if (entry.key != key) continue;
    if (entry.set(options, value)) return;
    fail(ErrorCode::invalid_argument, "'{}' takes {}, got '{}'", key, entry.form, value);
  }
  const std::vector<std::string_view> keys = config_keys();
  const std::string_view nearest = nearest_name(key, keys);
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no session option '{}'", key),
              nearest.empty() ? fmt::format("the options are {}", quoted_list(keys))
                              : fmt::format("did you mean '{}'?", nearest));
}

}  // namespace tenon
