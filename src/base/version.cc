#include "tenon/version.h"

namespace tenon {

static_assert(std::string_view(header_version) == TENON_VERSION, "CMakeLists.txt and tenon/version.h must agree");

std::string_view version() { return TENON_VERSION; }

}  // namespace tenon
