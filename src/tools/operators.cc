#include "tenon/tools/operators.h"

#include <algorithm>
#include <tuple>

#include "ops/cuda_support/kernels.h"
#include "ops/operator.h"
#include "providers/cpu/cpu_provider.h"

namespace tenon {

namespace ops {
#define FOLDER(name) void define_##name(OperatorList&);
#include "ops/folders.def"
#undef FOLDER
}  // namespace ops

namespace tools {
namespace {

struct Folder {
  const char* name;
  void (*define)(ops::OperatorList&);
};

constexpr Folder folders[] = {
#define FOLDER(name) {#name, ops::define_##name},
#include "ops/folders.def"
#undef FOLDER
};

std::vector<std::string> names_of(ops::TypeSet types) {
  std::vector<std::string> names;
  for (int number = 0; number < 32; ++number) {
    auto type = static_cast<ElementType>(number);
    if (types.contains(type)) names.emplace_back(name_of(type));
  }
  return names;
}

OperatorInfo describe(const ops::Operator& op, const char* folder) {
  OperatorInfo info;
  info.name = op.name;
  info.domain = op.domain;
  info.folder = folder;
  info.versions = op.versions;
  info.retired = !op.adapters.empty() && op.adapters.back().to > op.newest_version();
  info.decomposes = op.decomposition != nullptr;
  for (const ops::Adapter& adapter : op.adapters) info.changes.push_back(adapter.to);
  for (const ops::Inverse& inverse : op.inverses) info.ways_back.push_back(inverse.from);
  for (const ops::Addition& addition : op.additions) {
    const auto input = static_cast<size_t>(addition.input);
    info.additions.emplace_back(addition.input < 0 ? addition.attribute : op.inputs.at(input).name, addition.since);
  }
  if (cpu_kernels().find(op.domain, op.name)) info.providers.emplace_back("cpu");
  if (ops::cuda_kernels().find(op.domain, op.name)) info.providers.emplace_back("cuda");
  for (const auto* parameters : {&op.inputs, &op.outputs}) {
    for (const ops::Parameter& parameter : *parameters) {
      const std::string& key = parameter.variable.empty() ? parameter.name : parameter.variable;
      bool listed = std::ranges::any_of(info.types, [&](const auto& entry) { return entry.first == key; });
      if (!listed) info.types.emplace_back(key, names_of(parameter.types));
    }
  }
  return info;
}

}  // namespace

std::vector<OperatorInfo> list_operators() {
  std::vector<OperatorInfo> result;
  for (const Folder& folder : folders) {
    ops::OperatorList list;
    folder.define(list);
    for (const ops::Operator* op : list.all()) result.push_back(describe(*op, folder.name));
  }
  std::ranges::sort(result, {}, [](const OperatorInfo& op) { return std::tie(op.domain, op.name); });
  return result;
}

}  // namespace tools
}  // namespace tenon
