#pragma once

#include <string_view>
#include <unordered_map>

#include "ir/graph.h"
#include "onnx/tensor_reader.h"
#include "onnx/wire.h"

namespace tenon::onnx {

ir::Type read_type(WireReader message, int depth = 0);

// OperatorSetIdProto.
void read_opset(WireReader message, ir::OpsetImports& imports);

// Names of one graph, and of those around it.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, ir::Value*> names;

  ir::Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->outer) {
      auto found = scope->names.find(name);
      if (found != scope->names.end()) return found->second;
    }
    return nullptr;
  }
};

// Turns GraphProto, NodeProto, AttributeProto and FunctionProto into the graph form. Names are resolved when all of a
// graph's names are known, so nodes may come in any order. A name that nobody defines becomes an undefined value, a
// name defined twice two values: the verifier reports both.
class GraphReader {
 public:
  GraphReader(TensorReader& tensors, const GivenTensors& given) : tensors_(tensors), given_(given) {}

  // Whether initializers of the outermost graph are no inputs, also where it lists them among these.
  bool initializers_are_constants = false;

  std::unique_ptr<ir::Graph> read_graph(WireReader message, const Scope* outer = nullptr);
  std::unique_ptr<ir::Function> read_function(WireReader message);

 private:
  struct PendingNode;
  struct ValueInfo;
  ValueInfo read_value_info(WireReader message);
  PendingNode read_node(WireReader message);
  void define_outputs(ir::Graph& graph, Scope& scope, PendingNode& pending);
  void finish_node(ir::Graph& graph, Scope& scope, PendingNode& pending);
  void apply_value_infos(ir::Graph& graph, Scope& scope, std::vector<ValueInfo>& infos);
  ir::Attribute read_attribute(WireReader message, const Scope* scope);

  TensorReader& tensors_;
  const GivenTensors& given_;  // for the outermost graph
  int depth_ = 0;
};

}  // namespace tenon::onnx
