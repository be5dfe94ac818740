#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/check/subject.h"
#include "tools/targets/facts.h"

namespace tenon::tools {

// Where a model is to run, and what is known about that.
class Target {
 public:
  // "onnxruntime==1.16"; throws ErrorCode::invalid_argument with what there is, where it is none of it.
  static Target parse(const std::string& text, const std::string& provider);

  std::string name;   // "onnxruntime 1.16.3 (cpu)"
  std::string basis;  // where the facts come from
  Release limits;     // opsets and IR version
  // Tables by provider in the order in which they take nodes, with the release to look at: what the first does not take
  // falls back to the next. None: only the opset counts. A table of another product, as TensorRT's inside of
  // onnxruntime, is looked at in its newest release.
  struct Table {
    std::string provider;
    const TargetFacts* facts;
    size_t release;
  };
  std::vector<Table> tables;
};

// What would keep the model from running there, or would make parts of it run elsewhere.
void check_target(const Subject& subject, const Target& target, const std::string& model_name,
                  std::vector<Finding>& findings);

std::span<const CheckRule> target_rules();

}  // namespace tenon::tools
