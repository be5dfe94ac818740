#include "ops/custom_operator_list.h"

#include <algorithm>

#include "base/fail.h"

namespace tenon::ops {

std::string full_name(std::string_view domain, std::string_view name) {
  domain = ir::canonical_domain(domain);
  return domain.empty() ? std::string(name) : fmt::format("{}.{}", domain, name);
}

void CustomOperatorList::add(std::shared_ptr<const Operator> op, std::string source) {
  const std::string name = full_name(op->domain, op->name);
  // Nodes of ONNX's domains are taken for what ONNX says, by name.
  if (newest_opset_of(op->domain) > 0 || operators().find(op->domain, op->name)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} defines {} in {}, a domain of ONNX itself", source, op->name,
                            op->domain.empty() ? "ai.onnx" : op->domain),
                "give it a domain of its own, and the model's nodes too");
  }
  std::vector<Entry>& versions = entries_[{op->domain, op->name}];
  auto at = std::ranges::lower_bound(versions, op->newest_version(), {},
                                     [](const Entry& entry) { return entry.op->newest_version(); });
  if (at != versions.end() && at->op->newest_version() == op->newest_version()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} of version {} is defined twice: by {} and by {}", name,
                                                         op->newest_version(), at->source, source));
  }
  versions.insert(at, {std::move(op), std::move(source)});
}

std::shared_ptr<const Operator> CustomOperatorList::find(std::string_view domain, std::string_view name,
                                                         int64_t opset) const {
  if (entries_.empty()) return nullptr;
  auto found = entries_.find({std::string(ir::canonical_domain(domain)), std::string(name)});
  if (found == entries_.end()) return nullptr;
  const std::vector<Entry>& versions = found->second;
  if (opset == 0) return versions.back().op;
  auto newer = std::ranges::find_if(versions, [&](const Entry& entry) { return entry.op->newest_version() > opset; });
  return newer == versions.begin() ? newer->op : std::prev(newer)->op;
}

std::vector<std::string_view> CustomOperatorList::names_of(std::string_view domain) const {
  std::vector<std::string_view> names;
  for (const auto& [key, _] : entries_) {
    if (key.first == ir::canonical_domain(domain)) names.push_back(key.second);
  }
  return names;
}

}  // namespace tenon::ops
