#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/profile.h"

namespace tenon::python {

struct Model {
  Session session;
  std::string name;        // of the file; "" for one in memory
  void* stream = nullptr;  // of the GPU, the caller's; null: the model's own
};

struct Cancellation {
  std::stop_source source;
};

struct Profile {
  std::string name;
  std::vector<tools::ProfiledRun> runs;
  tools::ProfileSummary summary;
};

}  // namespace tenon::python
