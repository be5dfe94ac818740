#include "base/cpu_feature_names.h"

#include <utility>

namespace tenon {

std::string feature_names(const CpuFeatures& cpu) {
  const std::pair<bool, const char*> flags[] = {
      {cpu.neon, "neon"},
      {cpu.fp16, "fp16"},
      {cpu.dotprod, "dotprod"},
      {cpu.i8mm, "i8mm"},
      {cpu.bf16, "bf16"},
      {cpu.sve, "sve"},
      {cpu.sve256, "sve256"},
      {cpu.avx2, "avx2"},
      {cpu.avx512, "avx512"},
      {cpu.avx512_vnni, "avx512_vnni"},
      {cpu.avx512_bf16, "avx512_bf16"},
      {cpu.amx, "amx"},
  };
  std::string text;
  for (const auto& [present, name] : flags) {
    if (present) text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text;
}

}  // namespace tenon
