#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include "base/packed_storage.h"
#include "base/thread_pool.h"
#include "ir/graph.h"
#include "tenon/precision.h"
#include "tenon/value.h"

namespace tenon {

// The body of an If, Loop or Scan, ready to run, again and again. Values of outer graphs are bound already.
class Subgraph {
 public:
  virtual ~Subgraph() = default;
  virtual size_t input_count() const = 0;
  virtual size_t output_count() const = 0;
  // Whether the body does anything with input i; else it need not be given.
  virtual bool reads_input(size_t i) const = 0;
  // Output i need not be computed.
  virtual void drop_output(size_t i) = 0;

  // What is given stays for later runs, until something else is given or it is taken back.
  virtual void give_input(size_t i, Value value) = 0;
  virtual Value take_input(size_t i) = 0;
  // Throws ErrorCode::cancelled when the run of the model was cancelled.
  virtual void run() = 0;
  // Of the last run: to look at, until the next one; or to have.
  virtual const Value& output(size_t i) const = 0;
  virtual Value take_output(size_t i) = 0;
  // Gives `count` outputs from `output` on as the inputs from `input` on.
  virtual void carry(size_t output, size_t input, size_t count) = 0;
};

// What a kernel sees of one execution of its node.
class KernelRun {
 public:
  struct Output {
    Value* value = nullptr;                        // where it goes; null: nobody wants it
    ElementType element = ElementType::undefined;  // of a tensor output
    std::optional<Shape> shape;                    // when inference knew it before the kernel ran
    bool is_placed = false;                        // *value is a tensor already, to be written to
  };

  KernelRun(const ir::Node& node, std::span<const Value* const> inputs, std::span<Output> outputs,
            std::span<Subgraph* const> subgraphs, ThreadPool& threads, Allocator& allocator, bool keeps_plan)
      : node_(node),
        inputs_(inputs),
        outputs_(outputs),
        subgraphs_(subgraphs),
        threads_(threads),
        allocator_(allocator),
        keeps_plan_(keeps_plan) {}
  KernelRun(const KernelRun&) = delete;
  KernelRun(KernelRun&&) = default;

  const ir::Node& node() const { return node_; }
  size_t input_count() const { return inputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  const Value& value(size_t i) const { return *inputs_[i]; }
  // A tensor input.
  const Tensor& input(size_t i) const { return inputs_[i]->tensor(); }
  template <typename T>
  std::span<const T> data(size_t i) const {
    return input(i).data<T>();
  }
  // The content of an int32 or int64 input as int64.
  std::vector<int64_t> ints(size_t i) const;

  size_t output_count() const { return outputs_.size(); }
  bool wants_output(size_t i) const { return i < outputs_.size() && outputs_[i].value; }
  // The output's tensor, in the inferred type and shape.
  Tensor& output(size_t i) {
    Output& output = outputs_[i];
    return output.is_placed ? output.value->tensor() : allocate_output(i);
  }
  // The same with a shape that only the kernel knows.
  Tensor& output(size_t i, const Shape& shape);
  Tensor& output(size_t i, ElementType element, const Shape& shape);
  // Gives a value out as it is: a view of an input, a sequence, …. Where a plan has a place for the output, a tensor is
  // copied there.
  void set_output(size_t i, Value value);
  // The element type of a tensor output, undefined when only the kernel can tell.
  ElementType output_type(size_t i) const { return outputs_[i].element; }
  // The shape inference found for output i; nullopt when only the kernel can tell.
  const std::optional<Shape>& inferred_shape(size_t i) const { return outputs_[i].shape; }

  // The graphs in the node's attributes, in the order of the attributes.
  Subgraph& subgraph(std::string_view attribute) const;

  // What follows from the types and shapes of inputs and outputs alone, and from what the kernel was made with:
  // make() returns it when it is first asked for, and it is kept for later runs with the same shapes.
  template <typename T, typename Make>
  const T& per_plan(Make make) {
    if (!per_plan_) per_plan_ = std::make_shared<T>(make());
    return *static_cast<const T*>(per_plan_.get());
  }

  void forget_plan() { per_plan_.reset(); }
  // Whether there are later runs for it: sizes that only a run shows may never come again.
  bool keeps_plan() const { return keeps_plan_; }

  ThreadPool& threads() const { return threads_; }
  Allocator& allocator() const { return allocator_; }
  // Scratch memory that lives until the returned owner goes.
  std::shared_ptr<void> scratch(int64_t bytes) const { return allocator_.allocate(bytes); }

 private:
  const ir::Node& node_;
  std::span<const Value* const> inputs_;
  std::span<Output> outputs_;
  std::span<Subgraph* const> subgraphs_;
  ThreadPool& threads_;
  Allocator& allocator_;
  bool keeps_plan_;
  std::shared_ptr<void> per_plan_;

  Tensor& allocate_output(size_t i);
};

// One node ready to run: attributes read, constant weights packed. `run` may be called from several threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(KernelRun& run) const = 0;
  // Whether output 0 may be written over input i, when that has as many elements and bytes and nobody reads it later.
  virtual bool may_overwrite(size_t) const { return false; }
  // What it rounds its inputs to for speed, such as "bf16"; empty where it computes in their types.
  virtual std::string_view rounds_to() const { return {}; }
};

// What kernels made of constants. Nodes that make the same of the same constants share it.
class PackedConstants {
 public:
  // What is made, of which constants (null: left out), and how.
  struct Key {
    std::type_index type;
    std::vector<const ir::Value*> constants;
    std::string layout;

    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): it means the zero of <=>
  };
  // Says whether memory may be spent on it.
  using Rule = std::function<bool(const Key&)>;
  // The storage of what is made next.
  using Storages = std::function<PackedStorage&(const Key&)>;

  explicit PackedConstants(
      Rule rule, Storages storages = [](const Key&) -> PackedStorage& { return fresh_storage(); })
      : rule_(std::move(rule)), storages_(std::move(storages)) {}

  // Null where the rule forbids it.
  template <typename T, typename Make>
  std::shared_ptr<const T> get(std::vector<const ir::Value*> constants, std::string layout, Make make) {
    Key key{typeid(T), std::move(constants), std::move(layout)};
    if (!rule_(key)) return nullptr;
    std::shared_ptr<const void>& entry = made_[key];
    if (!entry) {
      auto packed = std::make_shared<const T>(make(storages_(key)));
      bytes_ += packed->bytes();
      entry = std::move(packed);
    }
    return std::static_pointer_cast<const T>(entry);
  }
  size_t bytes() const { return bytes_; }

 private:
  Rule rule_;
  Storages storages_;
  std::map<Key, std::shared_ptr<const void>> made_;
  size_t bytes_ = 0;
};

// What is known about a node when its kernel is made.
class NodeInfo {
 public:
  NodeInfo(const ir::Node& node, std::span<const Tensor* const> constants, PackedConstants& packed, ThreadPool& threads,
           Precision precision)
      : node_(node), constants_(constants), packed_(packed), threads_(threads), precision_(precision) {}

  const ir::Node& node() const { return node_; }
  // The content of input i when no run can change it, else null.
  const Tensor* constant(size_t i) const { return i < constants_.size() ? constants_[i] : nullptr; }
  // What the kernel makes of constant inputs, a T with bytes(); `layout` names what else it depends on, in words that
  // mean the same in another process. make(PackedStorage&) gets all its memory from the storage, and reads the inputs
  // only where that fills it: a compiled file has the memory's content in their place. The kernel does not read these
  // inputs in runs: only their types and shapes stay, because their memory is given back. Null where the session is to
  // save memory and that would not come of it: then the kernel does as for inputs that are computed.
  template <typename T, typename Make>
  std::shared_ptr<const T> packed(std::initializer_list<size_t> inputs, std::string layout, Make make) const {
    std::vector<const ir::Value*> values;
    for (size_t i : inputs) values.push_back(node_.input(i));
    std::shared_ptr<const T> made = packed_.get<T>(std::move(values), std::move(layout), make);
    if (made) packed_inputs_.insert(packed_inputs_.end(), inputs);
    return made;
  }
  // Whether runs read input i, as far as packed() was called.
  bool reads(size_t i) const { return std::ranges::find(packed_inputs_, i) == packed_inputs_.end(); }

  ThreadPool& threads() const { return threads_; }
  Precision precision() const { return precision_; }
  ElementType element(size_t i) const { return node_.input(i) ? node_.input(i)->type.element : ElementType::undefined; }

 private:
  const ir::Node& node_;
  std::span<const Tensor* const> constants_;
  PackedConstants& packed_;
  ThreadPool& threads_;
  Precision precision_;
  mutable std::vector<size_t> packed_inputs_;
};

// A provider's answer to a node: yes with the name of the kernel, or no with a reason a user can act on.
struct Claim {
  bool accepted = false;
  std::string text;

  static Claim yes(std::string kernel) { return {true, std::move(kernel)}; }
  static Claim no(std::string reason) { return {false, std::move(reason)}; }
};

}  // namespace tenon
