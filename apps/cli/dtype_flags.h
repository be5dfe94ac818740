// What `tenon convert --dtype` takes.
#pragma once

#include "cli.h"
#include "tenon/tools/convert_dtype.h"

namespace tenon::cli {

struct DtypeFlags {
  std::string type;
  tools::DtypeOptions options;
  bool no_overflow_check = false;
  void add_to(CLI::App& command);
  bool is_wanted() const { return !type.empty(); }
  tools::DtypeConversion convert(const tools::OnnxModel& model, const tools::InputSources& inputs) const;
};

void print(const tools::DtypeConversion& conversion);
nlohmann::json to_json(const tools::DtypeConversion& conversion);

}  // namespace tenon::cli
