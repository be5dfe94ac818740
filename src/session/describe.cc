#include "session/describe.h"

namespace tenon {

ValueInfo describe(const ir::Value& value) {
  ValueInfo info;
  info.name = value.name;
  info.type = value.type.name();
  if (value.type.is_tensor()) info.element = value.type.element;
  if (value.type.shape) {
    info.has_shape = true;
    for (const Dim& dim : *value.type.shape) info.shape.push_back(dim.to_string());
  }
  return info;
}

ModelInfo describe(const ir::Model& model) {
  ModelInfo info;
  info.ir_version = model.ir_version;
  info.opsets = model.opset_imports.entries();
  info.producer_name = model.producer_name;
  info.producer_version = model.producer_version;
  info.domain = model.domain;
  info.graph_name = model.graph->name;
  info.doc_string = model.doc_string;
  info.graph_doc_string = model.graph->doc_string;
  info.model_version = model.model_version;
  info.metadata = model.metadata;
  return info;
}

}  // namespace tenon
