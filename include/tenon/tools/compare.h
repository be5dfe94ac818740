#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/tools/error_statistics.h"
#include "tenon/tools/make_inputs.h"
#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// One of the two that are compared: a model with how it runs, or tensors that were computed elsewhere.
struct CompareSide {
  std::string label;  // "level none"
  std::optional<OnnxModel> model;
  SessionOptions session = {};
  NamedValues saved = {};  // if there is no model

  static CompareSide of(OnnxModel model, const SessionOptions& options, std::string label);
  // A .npz archive, a folder of .npy files, as `tenon run --dump` writes them, or an ONNX test-case folder, whose
  // inputs are added to `inputs`. `model` tells names and types.
  static CompareSide of_file(const std::filesystem::path& path, const OnnxModel& model, InputSources& inputs);
  // What the onnxruntime of a Python interpreter computes, intermediate values included.
  static CompareSide of_onnxruntime(const OnnxModel& model, const NamedValues& inputs, const std::string& python);
};

struct CompareOptions {
  ErrorLimit limit;
  // For tensors whose names fit a pattern ('*' is any text), others: the last that fits counts.
  std::vector<std::pair<std::string, Tolerance>> tolerances;
  // Patterns of names of tensors to look at; empty: all.
  std::vector<std::string> only;
  bool outputs_only = false;
  InputSources inputs;
  // Is told what is done: "level none", 0 to 1.
  std::function<void(const std::string&, double)> progress;
};

// A tensor that both made.
struct ComparedTensor {
  enum class Match : unsigned char { name, rewrite, position };
  std::string name;                        // in the model, or in the second of two
  std::string expected_name, actual_name;  // where it was run
  std::string node, op_type;               // that made it, in the second
  std::string type;                        // "float [1, 3, 224, 224]"
  bool is_output = false;
  Match match = Match::name;
  std::string problem;  // "" or why the numbers cannot be compared: "expected shape [3], got [4]"
  ErrorVerdict verdict;

  bool ok() const { return problem.empty() && verdict.within; }
};

struct Comparison {
  std::string expected, actual;         // labels
  std::vector<ComparedTensor> tensors;  // as the second run made them
  int64_t first = -1;                   // tensor that is not ok; -1: none
  // Tensors that only one side made.
  std::vector<std::string> only_expected, only_actual;
  std::vector<std::string> random, assumed;  // as in MadeInputs
  int64_t stored_bytes = 0;                  // in a temporary file, while it lasted

  bool ok() const { return first < 0; }
};

// Runs one, then the other, so that never more than one model is in memory; what the first computes waits in a
// temporary file. Tensors are matched by what the optimiser recorded of their names, then by name, and those that are
// left by their order and content. Throws what loading and running throw.
Comparison compare(const CompareSide& expected, const CompareSide& actual, const CompareOptions& options = {});

std::string_view name_of(ComparedTensor::Match match);

}  // namespace tenon::tools
