#include "ops/known_attributes.h"

#include <algorithm>

#include "ops/operator.h"

namespace tenon::ops {

void copy_known_attributes(const ir::Node& from, ir::Node& to) {
  const std::vector<AttributeRule>& rules = operator_of(to)->attributes;
  std::map<const ir::Value*, ir::Value*> none;
  for (const ir::Attribute& attribute : from.attributes) {
    if (std::ranges::find(rules, attribute.name, &AttributeRule::name) == rules.end()) continue;
    to.attributes.push_back(ir::clone(attribute, none));
  }
}

}  // namespace tenon::ops
