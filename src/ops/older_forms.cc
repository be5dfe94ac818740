#include "ops/older_forms.h"

#include "ops/decomposition.h"
#include "ops/operator.h"

namespace tenon::ops {

#define FOLDER(name) void older_##name(OlderForms&);
#include "ops/older_forms.def"
#undef FOLDER

const std::vector<OlderForm>& OlderForms::of(const std::string& op) const {
  static const std::vector<OlderForm> none;
  const auto found = forms_.find(op);
  return found == forms_.end() ? none : found->second;
}

const OlderForms& older_forms() {
  static const OlderForms list = [] {
    OlderForms all;
#define FOLDER(name) older_##name(all);
#include "ops/older_forms.def"
#undef FOLDER
    return all;
  }();
  return list;
}

std::string write_for_version(ir::Node& node, int64_t version) {
  std::string reason;
  const Operator* op = operator_of(node);
  if (op && op->domain.empty()) {
    for (const OlderForm& form : older_forms().of(op->name)) {
      if (form.before <= version) continue;
      reason = write_as(node, form.write);
      if (reason.empty()) return {};
    }
  }
  if (op && op->decomposition) return decompose(node);
  return reason.empty() ? "older operators cannot express it" : reason;
}

}  // namespace tenon::ops
