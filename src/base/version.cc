#include "tenon/version.h"

namespace tenon {

std::string_view version() { return TENON_VERSION; }

}  // namespace tenon
