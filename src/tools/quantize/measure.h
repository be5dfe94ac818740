// What integers are worth on this machine.
#pragma once

#include <map>
#include <string>

#include "tenon/tools/quantize.h"

namespace tenon::tools {

// Seconds by the names of nodes, of the fastest of several runs.
using NodeSeconds = std::map<std::string, double, std::less<>>;

struct MeasuredPair {
  NodeSeconds before, after;             // of steps
  double run_before = 0, run_after = 0;  // of whole runs, which nobody watches
};

// Runs both in turn, so that what else the machine does disturbs both.
MeasuredPair measure_pair(const OnnxModel& before, const OnnxModel& after, const NamedValues& inputs,
                          const SessionOptions& options);

// "stem" of "Conv 'stem' (node 0)"; "" where there is none.
std::string node_name(const std::string& description);

}  // namespace tenon::tools
