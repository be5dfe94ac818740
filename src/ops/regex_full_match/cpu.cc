#include "ops/regex_full_match/regex.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class RegexFullMatch final : public Kernel {
 public:
  explicit RegexFullMatch(const NodeInfo& info) : regex_(info.node().string_attribute("pattern", "")) {}

  void run(KernelRun& run) const override {
    auto texts = run.data<std::string>(0);
    auto matches = run.output(0).mutable_data<bool>();
    run.threads().parallel_for(run.input(0).elements(), 64, [&](int64_t begin, int64_t end) {
      Regex::Matcher matcher(regex_);
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        matches[i] = matcher.full_match(texts[i]);
      }
    });
  }

 private:
  Regex regex_;
};

}  // namespace

void cpu_regex_full_match(CpuKernels& list) {
  list.add("RegexFullMatch", [](const NodeInfo& info) { return std::make_unique<RegexFullMatch>(info); });
}

}  // namespace tenon::ops
