#include "ir/graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"

namespace tenon::ir {

Graph::~Graph() {
  // Subgraphs refer to this graph's values, so nodes go before values; no bookkeeping is needed on the way.
  nodes_.clear();
}

namespace {

constexpr std::string_view fresh_mark = "/tenon_";
constexpr int64_t most_fresh_names = int64_t{1} << 40;

// The number of a name that was made by add_value, perhaps before the model was written to its file; -1 for other
// names.
int64_t fresh_number(std::string_view name) {
  const size_t at = name.rfind(fresh_mark);
  if (at == std::string_view::npos) return -1;
  int64_t number = -1;
  std::from_chars(name.data() + at + fresh_mark.size(), name.data() + name.size(), number);
  return number < most_fresh_names ? number : -1;
}

}  // namespace

Value& Graph::add_value(std::string value_name, bool fresh) {
  if (fresh)
    value_name += fmt::format("{}{}", fresh_mark, fresh_names_++);
  else
    fresh_names_ = std::max(fresh_names_, fresh_number(value_name) + 1);
  Value& value = values_.emplace_back();
  value.name = std::move(value_name);
  value.graph_ = this;
  value.self_ = std::prev(values_.end());
  return value;
}

void Graph::add_input(Value& value) {
  value.is_input_ = true;
  inputs_.push_back(&value);
}

void Graph::remove_input(Value& value) {
  std::erase(inputs_, &value);
  value.is_input_ = false;
}

void Graph::remove_output(size_t i) {
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
  output_types_.erase(output_types_.begin() + static_cast<std::ptrdiff_t>(i));
}

void Graph::set_initializer(Value& value, ConstantPtr constant) {
  if (!value.is_initializer()) initializers_.push_back(&value);
  value.constant_ = std::move(constant);
}

void Graph::set_initializer(Value& value, SparseConstantPtr constant) {
  if (!value.is_initializer()) initializers_.push_back(&value);
  value.sparse_constant_ = std::move(constant);
}

Value& Graph::add_constant(Tensor tensor, std::string_view name_hint) {
  Value& value = add_value(std::string(name_hint), /*fresh=*/true);
  value.type = Type::tensor(tensor.type(), symbolic(tensor.shape()));
  auto constant = std::make_shared<Constant>();
  constant->tensor = std::move(tensor);
  constant->name = value.name;
  set_initializer(value, ConstantPtr(std::move(constant)));
  return value;
}

void Graph::remove_initializer(Value& value) {
  std::erase(initializers_, &value);
  value.constant_.reset();
  value.sparse_constant_.reset();
}

Node& Graph::add_node(std::string op_type, std::string domain, Node* before) {
  static std::atomic<uint64_t> made = 0;
  auto where = before ? before->self_ : nodes_.end();
  auto self = nodes_.emplace(where);
  self->op_type = std::move(op_type);
  self->domain = std::move(domain);
  self->graph_ = this;
  self->serial_ = ++made;
  self->self_ = self;
  if (before) self->origin = before->origin;
  return *self;
}

namespace {

void collect_graphs(Graph& graph, std::vector<Graph*>& list) {
  list.push_back(&graph);
  for (Node& node : graph.nodes()) {
    for (const Attribute& attribute : node.attributes)
      attribute.for_each_graph([&](Graph& subgraph) { collect_graphs(subgraph, list); });
  }
}

}  // namespace

void Graph::detach() {
  std::vector<Graph*> own;
  collect_graphs(*this, own);
  const std::unordered_set<const Graph*> inside(own.begin(), own.end());
  for (Graph* graph : own) {
    for (Node& node : graph->nodes_) {
      for (size_t i = 0; i < node.input_count(); ++i) {
        if (node.input(i) && !inside.contains(&node.input(i)->graph())) node.set_input(i, nullptr);
      }
    }
  }
}

void Graph::remove_node(Node& node, Removed* bin) {
  node.remove_trailing_inputs(0);
  for (const Attribute& attribute : node.attributes)
    attribute.for_each_graph([](Graph& subgraph) { subgraph.detach(); });
  Removed gone;
  for (Value* value : node.outputs_) {
    if (!value) continue;
    TENON_CHECK(value->users_.empty());
    value->producer_ = nullptr;
    gone.values.splice(gone.values.end(), values_, value->self_);
  }
  gone.nodes.splice(gone.nodes.end(), nodes_, node.self_);
  if (!bin) return;
  bin->values.splice(bin->values.end(), gone.values);
  bin->nodes.splice(bin->nodes.end(), gone.nodes);
}

void Graph::remove_unused_initializers(const std::function<bool(const Value&)>& may_go, Removed* bin) {
  Removed gone;
  std::erase_if(initializers_, [&](Value* value) {
    if (!value->users_.empty() || value->is_input_ || !may_go(*value)) return false;
    gone.values.splice(gone.values.end(), values_, value->self_);
    return true;
  });
  if (bin) bin->values.splice(bin->values.end(), gone.values);
}

void Graph::replace_uses(Value& old_value, Value& new_value) {
  if (&old_value == &new_value) return;
  for (Node* user : old_value.users_) {
    std::ranges::replace(user->inputs_, &old_value, &new_value);
    new_value.users_.push_back(user);
  }
  old_value.users_.clear();
  std::ranges::replace(outputs_, &old_value, &new_value);
}

namespace {

// The nodes of `graph` that must run before `node`, because it or its subgraphs read their outputs.
template <typename Visit>
void for_each_dependency(const Graph& graph, const Node& node, Visit&& visit) {
  for (Value* value : node.inputs()) {
    if (value && value->producer() && &value->graph() == &graph) visit(*value->producer());
  }
  for (const Attribute& attribute : node.attributes) {
    attribute.for_each_graph([&](const Graph& subgraph) {
      for (const Node& inner : subgraph.nodes()) for_each_dependency(graph, inner, visit);
      for (Value* value : subgraph.outputs()) {
        if (value->producer() && &value->graph() == &graph) visit(*value->producer());
      }
    });
  }
}

[[noreturn]] void report_cycle(const Graph& graph, const std::unordered_map<const Node*, int>& waiting) {
  // Walk backwards along nodes that still wait until one comes up twice.
  std::vector<const Node*> walk;
  std::unordered_map<const Node*, size_t> seen;
  for (const Node& start : graph.nodes()) {
    if (waiting.at(&start) == 0) continue;
    const Node* node = &start;
    while (!seen.count(node)) {
      seen[node] = walk.size();
      walk.push_back(node);
      const Node* next = nullptr;
      for_each_dependency(graph, *node, [&](const Node& d) {
        if (!next && waiting.at(&d) > 0) next = &d;
      });
      node = next;
    }
    walk.erase(walk.begin(), walk.begin() + static_cast<std::ptrdiff_t>(seen[node]));
    break;
  }
  std::string path;
  size_t shown = std::min<size_t>(walk.size(), 8);
  for (size_t i = 0; i < shown; ++i) path += walk[walk.size() - 1 - i]->describe_here() + " -> ";
  if (shown < walk.size()) path += fmt::format("{} more -> ", walk.size() - shown);
  Error error(ErrorCode::cyclic_graph, "the nodes feed each other in a circle: " + path + walk.back()->describe_here(),
              "a value must be computed before it is read; look for an output name that is used twice");
  throw error.at_node(walk.back()->describe());
}

}  // namespace

void Graph::sort_topologically() {
  // Kahn's algorithm that prefers the file's order, so that a sorted graph stays as it is.
  std::unordered_map<const Node*, int> waiting;
  std::unordered_map<const Node*, std::vector<const Node*>> waiters;
  std::unordered_map<const Node*, size_t> index;
  bool sorted = true;
  size_t count = 0;
  for (const Node& node : nodes_) index[&node] = count++;
  for (const Node& node : nodes_) {
    std::unordered_set<const Node*> dependencies;
    for_each_dependency(*this, node, [&](const Node& d) {
      if (!dependencies.insert(&d).second) return;
      waiters[&d].push_back(&node);
      if (index[&d] >= index[&node]) sorted = false;
    });
    waiting[&node] = static_cast<int>(dependencies.size());
  }
  if (sorted) return;

  std::vector<const Node*> ready;  // heap, smallest index on top
  auto later = [&](const Node* a, const Node* b) { return index[a] > index[b]; };
  for (const Node& node : nodes_) {
    if (waiting[&node] == 0) ready.push_back(&node);
  }
  std::ranges::make_heap(ready, later);
  std::list<Node> result;
  size_t done = 0;
  while (!ready.empty()) {
    std::ranges::pop_heap(ready, later);
    const Node* node = ready.back();
    ready.pop_back();
    ++done;
    result.splice(result.end(), nodes_, node->self_);
    for (const Node* waiter : waiters[node]) {
      if (--waiting[waiter] == 0) {
        ready.push_back(waiter);
        std::ranges::push_heap(ready, later);
      }
    }
  }
  if (done != count) {
    result.splice(result.end(), nodes_);
    nodes_ = std::move(result);
    report_cycle(*this, waiting);
  }
  nodes_ = std::move(result);
}

std::string_view canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

void OpsetImports::set(std::string_view domain, int64_t version) {
  for (auto& [name, old] : entries_) {
    if (canonical_domain(name) == canonical_domain(domain)) {
      old = version;
      return;
    }
  }
  add(std::string(domain), version);
}

int64_t OpsetImports::version(std::string_view domain) const {
  int64_t version = 0;
  for (const auto& [name, number] : entries_) {
    if (canonical_domain(name) == canonical_domain(domain)) version = std::max(version, number);
  }
  return version;
}

void adopt_subgraphs(Node& node) {
  for (const Attribute& attribute : node.attributes) {
    attribute.for_each_graph([&](Graph& graph) { graph.owner_ = &node; });
  }
}

}  // namespace tenon::ir
