// Sizes in the declared types of a model.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon::tools {

// Calls `change` with every dimension in a declared type: of values and outputs, in graphs of the graph too.
void change_dims(ir::Graph& graph, const std::function<void(Dim&)>& change);
void change_dims(ir::Type& type, const std::function<void(Dim&)>& change);

// Calls change(value, type) with the declared type of every output of the graph.
void for_each_output_type(ir::Graph& graph, const std::function<void(const ir::Value&, ir::Type&)>& change);

// The names in the text of a dimension: "past" and "seq" in "past + 2*seq". One that is no expression, such as
// "batch-size 1", is a name as a whole.
std::vector<std::string> names_in(const std::string& dim);
// The text with other names.
std::string replace_names(const std::string& dim, const std::map<std::string, std::string>& names);

// The size that a text stands for, with names replaced where `lookup` knows them: "2*seq + 1" is 9 if seq is 4. A text
// that is no expression is a name.
using DimLookup = std::function<std::optional<Dim>(const std::string&)>;
Dim substitute(const std::string& dim, const DimLookup& lookup);

}  // namespace tenon::tools
