// The user's own operators as those that the rest of Tenon knows.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "ops/custom_operator_list.h"
#include "tenon/custom_operator.h"

namespace tenon {

// The operator with the user's rule and kernel behind it. Throws ErrorCode::invalid_argument, naming `source`, if the
// definition makes no sense. Whatever the user's code throws comes out as an Error; node and tensor are added as for
// every other operator.
std::shared_ptr<const ops::Operator> to_operator(CustomOperator definition, const std::string& source);

// What a session is given: operators, and libraries to load them from. Throws if one of them cannot be used.
ops::CustomOperatorList list_custom_operators(const std::vector<CustomOperator>& operators,
                                              const std::vector<std::filesystem::path>& libraries);

}  // namespace tenon
