// How a program runs for given shapes: which steps execute, and where every value lies.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ops/layout.h"
#include "session/program.h"
#include "session/shape_resolver.h"

namespace tenon {

// What decides a plan: types and shapes of the arguments, contents of those that decide shapes, wanted outputs.
using PlanKey = SmallVector<int64_t, 32>;

struct Plan {
  // Where a value lies.
  enum class Home : uint8_t {
    none,      // no step of this plan reads or writes it
    argument,  // memory of the caller
    known,     // content that depends on shapes and weights alone, found when the plan was made
    arena,     // a part of the run's one block of memory
    buffer,    // memory of its own, as it is given out or kept by someone
    kernel,    // its size is known once it is computed: the kernel makes it
  };

  // Memory that one or more values share: a value, views of it, its parts.
  struct Block {
    Home home = Home::arena;
    bool on_device = false;  // in the memory of the program's device
    int64_t bytes = 0;
    int64_t room = 0;                   // in the arena: more than bytes, where these change from plan to plan
    int64_t offset = 0;                 // in the arena
    int source = -1;                    // of argument and known: the slot that it is
    int first_step = 0, last_step = 0;  // positions of items, or their stages where there are such
    SmallVector<int, 2> slots;
  };
  // How a value came to its block.
  enum class Placing : uint8_t {
    own,         // it is the block
    view,        // a part of the step's first input
    over_input,  // written over an input
    part,        // moved into the output of a step that joins its inputs
  };
  struct Slot {
    int block = -1;
    Placing placing = Placing::own;
    bool leaves = false;  // it is given out, or may be kept
    int64_t offset = 0;   // bytes into the block
    ElementType element = ElementType::undefined;
    Shape shape;
  };
  struct Item {
    int step = 0;
    bool is_placed = false;       // all outputs have a home before the kernel runs
    bool needs_check = false;     // inputs whose content the shapes do not show must be checked in every run
    SmallVector<int, 1> buffers;  // blocks to allocate before
    SmallVector<int, 2> drops;    // slots to let go after
  };

  std::vector<Slot> slots;
  std::vector<Block> blocks;
  std::vector<Item> items;
  std::vector<int> item_of_step;                  // -1: the step does not run
  std::vector<std::pair<int, int>> side_by_side;  // items [first, second) that may run at the same time, in order
  std::vector<std::pair<int, Value>> known;
  std::vector<int> argument_views;  // slots that are views of arguments
  std::vector<int> transient;       // slots to clear after a run
  int64_t arena_bytes[2] = {0, 0};  // of the host and of the device
  // What the plan was made for.
  struct Argument {
    enum class Kind : uint8_t { absent, tensor, other } kind = Kind::absent;
    ElementType element = ElementType::undefined;
    Shape shape;
  };
  std::vector<Argument> arguments;
  std::vector<bool> content_read;  // arguments whose content decided something

  Home home(int slot) const {
    const int block = slots[static_cast<size_t>(slot)].block;
    return block < 0 ? Home::none : blocks[static_cast<size_t>(block)].home;
  }
};

// `shapes` were resolved for the same outputs. Items run side by side where that is worth it on so many threads.
std::shared_ptr<Plan> make_plan(const Program& program, const ShapeResolver& shapes,
                                const std::vector<bool>& wanted_outputs, int branch_threads = 1);

// The difference between two plans of the same structure: what one of them has where they differ, while the plan has
// what the other one does.
struct PlanChange {
  struct SlotChange {
    int slot;
    Shape shape;
    int64_t offset;
  };
  std::vector<std::pair<size_t, Shape>> arguments;
  std::vector<std::pair<size_t, Value>> known;  // by position in Plan::known
  std::vector<SlotChange> slots;
  std::vector<int> items;  // with such a slot among their inputs or outputs
};

// Makes the plan the other one, and the change the way back.
void exchange(Plan& plan, PlanChange& change);

// Makes the plan that was made for what the resolver knew before its last time one for what it knows now, provided that
// every decision in it still holds: only shapes and known contents differ, and blocks have room. Returns the way back.
// Else nullopt, and the plan is as it was.
std::optional<PlanChange> update_plan(Plan& plan, const Program& program, const ShapeResolver& shapes);

// What the rules of views and parts see of a step.
class StepLayout {
 public:
  StepLayout(const Plan& plan, const ShapeResolver& shapes, const Step& step);
  ops::Layout get() const;

 private:
  const Step& step_;
  SmallVector<const Shape*, 8> shapes_;
  SmallVector<const Tensor*, 8> contents_;
};

}  // namespace tenon
