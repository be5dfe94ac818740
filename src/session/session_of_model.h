#pragma once

#include <memory>

#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// A session for a model that is in memory already: as Session::load of a file that has it.
Session session_of(std::unique_ptr<ir::Model> model, const SessionOptions& options = {});

}  // namespace tenon
