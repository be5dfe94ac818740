#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "base/new_file.h"
#include "onnx/message_writer.h"
#include "onnx/model_file.h"
#include "onnx/string_pairs.h"

namespace tenon::onnx {
namespace {

namespace fs = std::filesystem;

void write_text(WireWriter& out, uint32_t field, const std::string& text) {
  if (!text.empty()) out.bytes(field, text);
}

void write_opsets(WireWriter& out, uint32_t field, const ir::OpsetImports& imports) {
  for (const auto& [domain, version] : imports.entries()) {
    WireWriter opset;
    opset.bytes(1, domain);
    opset.int64(2, version);
    out.message(field, std::move(opset));
  }
}

WireWriter write_value_info(const ir::Value& value, const ir::Type& type) {
  WireWriter out;
  out.bytes(1, value.name);
  if (type.known()) out.message(2, write_type(type));
  write_text(out, 3, value.doc_string);
  write_string_pairs(out, 4, value.metadata);
  out.raw_fields(value.other_fields);
  return out;
}

class ModelWriter {
 public:
  explicit ModelWriter(ExternalWriter* external) : external_(external) {}

  WireWriter model(const ir::Model& model) {
    WireWriter out;
    out.int64(1, model.ir_version);
    write_text(out, 2, model.producer_name);
    write_text(out, 3, model.producer_version);
    write_text(out, 4, model.domain);
    if (model.model_version) out.int64(5, model.model_version);
    write_text(out, 6, model.doc_string);
    out.message(7, graph(*model.graph));
    write_opsets(out, 8, model.opset_imports);
    write_string_pairs(out, 14, model.metadata);
    for (const auto& f : model.functions) out.message(25, function(*f));
    out.raw_fields(model.other_fields);
    return out;
  }

 private:
  WireWriter graph(const ir::Graph& graph) {
    WireWriter out;
    for (const ir::Node& n : graph.nodes()) out.message(1, node(n));
    write_text(out, 2, graph.name);
    for (const ir::Value* value : graph.initializers()) {
      if (value->constant()) out.message(5, write_tensor(*value->constant(), external_));
    }
    write_text(out, 10, graph.doc_string);
    for (const ir::Value* value : graph.inputs()) out.message(11, write_value_info(*value, value->type));
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const ir::Type& declared = graph.declared_output_types()[i];
      const ir::Value& value = *graph.outputs()[i];
      out.message(12, write_value_info(value, declared.known() || &value.graph() != &graph ? declared : value.type));
    }
    write_value_infos(out, 13, graph);
    for (const auto& [tensor, parameters] : graph.quantization_annotations) {
      WireWriter annotation;
      annotation.bytes(1, tensor);
      write_string_pairs(annotation, 2, parameters);
      out.message(14, std::move(annotation));
    }
    for (const ir::Value* value : graph.initializers()) {
      if (value->sparse_constant()) out.message(15, write_sparse_tensor(*value->sparse_constant(), external_));
    }
    write_string_pairs(out, 16, graph.metadata);
    out.raw_fields(graph.other_fields);
    return out;
  }

  static void write_value_infos(WireWriter& out, uint32_t field, const ir::Graph& graph) {
    std::vector<const ir::Value*> infos;
    for (const ir::Value& value : graph.values()) {
      if (value.value_info_position >= 0) infos.push_back(&value);
    }
    std::ranges::sort(infos, {}, [](const ir::Value* v) { return v->value_info_position; });
    for (const ir::Value* value : infos) out.message(field, write_value_info(*value, value->type));
  }

  WireWriter node(const ir::Node& node) {
    WireWriter out;
    for (const ir::Value* value : node.inputs()) out.bytes(1, value ? value->name : "");
    for (const ir::Value* value : node.outputs()) out.bytes(2, value ? value->name : "");
    write_text(out, 3, node.name);
    out.bytes(4, node.op_type);
    for (const ir::Attribute& a : node.attributes) out.message(5, attribute(a));
    write_text(out, 6, node.doc_string);
    write_text(out, 7, node.domain);
    write_text(out, 8, node.overload);
    write_string_pairs(out, 9, node.metadata);
    out.raw_fields(node.other_fields);
    return out;
  }

  WireWriter attribute(const ir::Attribute& attribute) {
    using Kind = ir::AttributeKind;
    WireWriter out;
    out.bytes(1, attribute.name);
    if (attribute.reference.empty()) {
      const auto& value = attribute.value;
      switch (attribute.kind) {
        case Kind::undefined:
          break;
        case Kind::float_:
          out.float32(2, std::get<float>(value));
          break;
        case Kind::int_:
          out.int64(3, std::get<int64_t>(value));
          break;
        case Kind::string:
          out.bytes(4, std::get<std::string>(value));
          break;
        case Kind::tensor:
          out.message(5, write_tensor(*std::get<ir::ConstantPtr>(value), external_));
          break;
        case Kind::graph:
          out.message(6, graph(*std::get<std::unique_ptr<ir::Graph>>(value)));
          break;
        case Kind::floats:
          for (float number : std::get<std::vector<float>>(value)) out.float32(7, number);
          break;
        case Kind::ints:
          for (int64_t number : std::get<std::vector<int64_t>>(value)) out.int64(8, number);
          break;
        case Kind::strings:
          for (const std::string& text : std::get<std::vector<std::string>>(value)) out.bytes(9, text);
          break;
        case Kind::tensors:
          for (const auto& tensor : std::get<std::vector<ir::ConstantPtr>>(value))
            out.message(10, write_tensor(*tensor, external_));
          break;
        case Kind::graphs:
          for (const auto& g : std::get<std::vector<std::unique_ptr<ir::Graph>>>(value)) out.message(11, graph(*g));
          break;
        case Kind::type:
          out.message(14, write_type(std::get<ir::Type>(value)));
          break;
        case Kind::types:
          for (const ir::Type& type : std::get<std::vector<ir::Type>>(value)) out.message(15, write_type(type));
          break;
        case Kind::sparse_tensor:
          out.message(22, write_sparse_tensor(*std::get<ir::SparseConstantPtr>(value), external_));
          break;
        case Kind::sparse_tensors:
          for (const auto& sparse : std::get<std::vector<ir::SparseConstantPtr>>(value)) {
            out.message(23, write_sparse_tensor(*sparse, external_));
          }
          break;
      }
    }
    write_text(out, 13, attribute.doc_string);
    if (attribute.kind != Kind::undefined) out.int64(20, static_cast<int64_t>(attribute.kind));
    write_text(out, 21, attribute.reference);
    out.raw_fields(attribute.other_fields);
    return out;
  }

  WireWriter function(const ir::Function& function) {
    WireWriter out;
    out.bytes(1, function.name);
    for (const ir::Value* value : function.body->inputs()) out.bytes(4, value->name);
    for (const ir::Value* value : function.body->outputs()) out.bytes(5, value->name);
    for (const std::string& name : function.attribute_names) out.bytes(6, name);
    for (const ir::Node& n : function.body->nodes()) out.message(7, node(n));
    write_text(out, 8, function.doc_string);
    write_opsets(out, 9, function.opset_imports);
    write_text(out, 10, function.domain);
    for (const ir::Attribute& a : function.attribute_defaults) out.message(11, attribute(a));
    write_value_infos(out, 12, *function.body);
    write_text(out, 13, function.overload);
    write_string_pairs(out, 14, function.metadata);
    out.raw_fields(function.other_fields);
    return out;
  }

  ExternalWriter* external_;
};

}  // namespace

std::string serialize_model(const ir::Model& model) { return ModelWriter(nullptr).model(model).to_string(); }

std::string serialize_model(const ir::Model& model, ExternalWriter& external) {
  return ModelWriter(&external).model(model).to_string();
}

void save_model(const ir::Model& model, const fs::path& path, const WriteOptions& options) {
  constexpr uint64_t most_of_protobuf = std::numeric_limits<int32_t>::max();
  ExternalWriter external(options.data_file.empty() ? path.filename().string() + ".data" : options.data_file);
  external.take_from(options.external_from);
  WireWriter message = ModelWriter(&external).model(model);
  if (message.size() > most_of_protobuf) {
    throw Error(ErrorCode::overflow,
                fmt::format("the file would have {} bytes, and protobuf messages have 2 GB at most", message.size()),
                "store tensors in a file of their own");
  }
  const fs::path data_path = path.parent_path() / external.file_name();
  if (options.about_to_write) {
    options.about_to_write(path);
    if (!external.pieces().empty()) options.about_to_write(data_path);
  }
  NewFile file(path);
  message.write_to([&](std::string_view piece) { file.write(piece); });
  if (!external.pieces().empty()) {
    NewFile data(data_path);
    for (const auto& piece : external.pieces()) {
      data.fill_to(piece.offset);
      data.write(piece.bytes);
    }
    data.commit();
  }
  file.commit();
}

}  // namespace tenon::onnx
