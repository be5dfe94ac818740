#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// An error keeps the model from running, or from running on the target; a warning is likely not what its author
// wanted; a note is good to know.
enum class Severity : uint8_t { note, warning, error };
std::string_view name_of(Severity severity);

struct Finding {
  Severity severity = Severity::note;
  std::string code;  // a stable word for the rule, such as "baked-batch"
  std::string node;  // as errors name it: "Reshape 'flat' (node 3)"; may be empty, as may the others
  std::string tensor;
  std::string reason;  // a sentence
  std::string fix;     // what can be done, often a command
};

struct CheckOptions {
  // Where the model is to run: "onnxruntime==1.16", "openvino==2024.1", "tensorrt==10", "opset==13"; "": only whether
  // it is sound.
  std::string target;
  // Of onnxruntime: cpu, cuda or tensorrt.
  std::string provider = "cpu";
  // Rules to leave out, by code.
  std::vector<std::string> disabled;
  // What the model is called in commands that are suggested; "": its path, or MODEL.
  std::string model_name;
  // Of these only the custom operators matter.
  SessionOptions session;
};

struct CheckReport {
  std::vector<Finding> findings;  // the gravest first, those of a rule together
  std::string target, provider;   // as asked for, the provider where the target has several
  std::string basis;              // where the facts about the target come from
  int64_t nodes = 0;              // looked at, subgraphs and functions included

  int64_t count(Severity severity) const;
  // Nothing is an error.
  bool ok() const { return count(Severity::error) == 0; }
};

// Finds everything that is wrong with a model at once. Throws only where there is no model to look at: the file is
// missing, incomplete or no ONNX model; or where the target or provider is not one of those it knows.
CheckReport check(const std::filesystem::path& model, const CheckOptions& options = {});
CheckReport check(const OnnxModel& model, const CheckOptions& options = {});

struct CheckRule {
  std::string_view code;
  Severity severity;
  std::string_view finds;
};
// Every rule, those about targets included.
std::vector<CheckRule> check_rules();

// "onnxruntime 1.15.0 to 1.31.1, cpu", … for help texts.
std::vector<std::string> known_targets();

}  // namespace tenon::tools
