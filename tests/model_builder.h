// Small models for tests.
//
//   ModelBuilder b;
//   b.input("x", ElementType::float32, {Dim::symbol("batch"), 3});
//   b.initializer("w", Tensor({3, 2}, {1.0f, …}));
//   b.node("MatMul", {"x", "w"}, {"y"});
//   b.output("y");
//   Session session = b.session();
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/operator.h"
#include "tenon/session.h"

namespace tenon {

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = ops::newest_opset);

  ModelBuilder& input(const std::string& name, ElementType type, std::optional<SymbolicShape> shape = std::nullopt);
  ModelBuilder& initializer(const std::string& name, Tensor tensor);
  ir::Node& node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                 const std::string& name = "", const std::string& domain = "");
  ModelBuilder& output(const std::string& name, ir::Type type = {});

  ir::Model& model() { return model_; }
  ir::Graph& graph() { return *model_.graph; }
  // The value of this name, made when it does not exist yet.
  ir::Value& value(const std::string& name);
  std::string bytes() const;
  Session session(const SessionOptions& options = {}) const;
  // The text of the error that loading throws; "" if it does not.
  std::string load_error() const;

 private:
  ir::Model model_;
};

// The text of the error that `f` throws; "" if it throws none.
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tenon
