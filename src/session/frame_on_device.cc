// What of a frame is about its device: recordings, copies, times.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/index.h"
#include "session/frame.h"
#include "session/step_run.h"
#include "tenon/device.h"

namespace tenon {

using Home = Plan::Home;

void Frame::forget_recordings() {
  // They may be under way still.
  const bool has_any = std::ranges::any_of(recorded_, [](const Recorded& one) { return one.recording != nullptr; });
  if (has_any && !is_settled_) queue_->finish_kept();
  recorded_.clear();
}

bool Frame::is_recordable(const Plan::Item& item) const {
  const Step& step = at(program_.steps(), item.step);
  if (!step.on_device || !item.is_placed || item.needs_check || !item.buffers.empty() || !item.drops.empty())
    return false;
  const auto stays = [&](int slot) {
    const Home home = slot < 0 ? Home::known : plan_->home(slot);
    return home == Home::known || (home == Home::arena && program_.is_on_device(slot));
  };
  return std::ranges::all_of(step.inputs, stays) && std::ranges::all_of(step.outputs, stays);
}

void Frame::find_recordable_items() {
  forget_recordings();
  runs_ = 0;
  if (!queue_) return;
  for (size_t first = 0, last; first < plan_->items.size(); first = last + 1) {
    for (last = first; last < plan_->items.size() && is_recordable(plan_->items[last]);) ++last;
    if (last > first + 1) recorded_.push_back({first, last, nullptr});
  }
}

bool Frame::run_recorded(Recorded& recorded) {
  if (runs_ == 0 || recorded.is_unfit) return false;
  if (!recorded.recording) {
    // Work on other queues of this thread must not begin in between, so what fails ends the recording.
    queue_->begin_recording();
    try {
      for (size_t i = recorded.first; i < recorded.last; ++i) {
        if (i > recorded.first) await_uploads(i);  // the first one's are awaited before each replay
        calls_[i].kernel->run(calls_[i].run);
      }
    } catch (...) {
      queue_->end_recording();
      throw;
    }
    recorded.recording = queue_->end_recording();
    recorded.is_unfit = !recorded.recording;
    if (recorded.is_unfit) return false;
  }
  recorded.recording->replay(*queue_);
  return true;
}

// Copies to the device that come before all of its work may go beside it, up to the first item that reads them; copies
// to the host that come after it, up to the end of the run. In between, memory is used for one thing after another.
void Frame::find_copies_beside() {
  for (Call& call : calls_) {
    call.awaited.clear();
    call.is_beside = false;
  }
  if (!queue_) return;
  const auto step_of = [&](size_t i) -> const Step& { return at(program_.steps(), plan_->items[i].step); };
  const auto works = [&](const Step& step) { return step.on_device || !step.subgraphs.empty(); };
  const auto is_large = [&](int slot) {
    const Plan::Slot& value = at(plan_->slots, slot);
    return byte_size(value.element, value.shape.elements()) >= Transfers::worth_beside;
  };
  const size_t count = plan_->items.size();
  for (size_t i = 0; i < count && !works(step_of(i)); ++i) {
    const Step& step = step_of(i);
    const int slot = step.copy == Step::Copy::to_device ? step.outputs[0] : -1;
    if (slot < 0 || !plan_->items[i].is_placed || plan_->home(slot) != Home::arena || !is_large(slot)) continue;
    const int block = at(plan_->slots, slot).block;
    const auto reads = [&](const Step& reader) {
      return !reader.subgraphs.empty() || std::ranges::any_of(reader.inputs, [&](int input) {
        return input >= 0 && at(plan_->slots, input).block == block;
      });
    };
    size_t reader = i + 1;
    while (reader < count && !reads(step_of(reader))) ++reader;
    if (reader == count) continue;
    calls_[i].is_beside = true;
    calls_[reader].awaited.push_back(static_cast<int>(i));
  }
  for (size_t i = count; i-- > 0 && !works(step_of(i)) && step_of(i).copy != Step::Copy::to_device;)
    calls_[i].is_beside = step_of(i).copy == Step::Copy::to_host;
}

// Whether it may read what a copy to the host is still bringing there: a step of the device reads sizes there.
bool Frame::reads_download(const Step& step) const {
  if (step.copy == Step::Copy::to_host) return false;
  return !step.on_device || std::ranges::any_of(step.inputs, [&](int slot) {
    return slot >= 0 && !program_.is_on_device(slot) && plan_->home(slot) != Home::known &&
           plan_->home(slot) != Home::argument;
  });
}

void Frame::await_uploads(size_t index) {
  for (int item : calls_[index].awaited) transfers_->await_upload(at(plan_->items, item).step);
}

void Frame::copy(size_t index, std::span<const Tensor> destinations) {
  const Plan::Item& item = plan_->items[index];
  const Step& step = at(program_.steps(), item.step);
  const bool to_device = step.copy == Step::Copy::to_device;
  const Value& from = at(values_, step.inputs[0]);
  if (!from.defined()) fail_without_value(step, 0);
  const Tensor& source = from.tensor();
  Value& to = at(values_, step.outputs[0]);
  if (!item.is_placed) {
    const bool stays = to_device || stays_on_device(step.outputs[0], destinations);
    // In a body it is the copy as well: what such steps make is not written to again.
    if (iterates_ && stays && device_of(source) == program_.device()) {
      to = source;
      return;
    }
    to = Tensor(source.type(), source.shape(), stays ? *queue_ : allocator_);
  }
  void* target = to.tensor().mutable_raw();
  // What the caller gave, or wants to have, may be on the device already.
  const Device* there = device_of(to_device ? source : to.tensor());
  const bool is_beside = calls_[index].is_beside;
  using Order = Transfers::Order;
  if (there == program_.device()) {
    queue_->copy(target, source.raw(), source.bytes());
    is_settled_ = false;
  } else if (to_device) {
    // It may be on another device. Work of an earlier run may still use the memory that it goes to.
    transfers_->upload(item.step, target, on_host(source).raw(), source.bytes(),
                       is_beside && was_settled_ ? Order::beside : Order::in_queue);
  } else {
    const bool is_large = source.bytes() >= Transfers::worth_beside;
    transfers_->download(item.step, target, source.raw(), source.bytes(),
                         is_beside && is_large ? Order::beside : Order::in_queue);
    is_settled_ = is_beside;  // it comes after all of the device's work, and is waited for
  }
}

bool Frame::stays_on_device(int slot, std::span<const Tensor> destinations) const {
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (program_.output_slots()[i] == slot) return stands_for_output(destinations[i]);
  }
  return false;
}

int64_t Frame::time_on_device(size_t index, int repeats) {
  const Step& step = at(program_.steps(), plan_->items[index].step);
  // What is written over its input reads something else each time.
  std::vector<std::pair<const Tensor*, std::shared_ptr<void>>> saved;
  for (int slot : step.outputs) {
    if (slot < 0 || at(plan_->slots, slot).placing != Plan::Placing::over_input) continue;
    const Tensor& tensor = at(values_, slot).tensor();
    saved.emplace_back(&tensor, queue_->allocate(tensor.bytes()));
    queue_->copy(saved.back().second.get(), tensor.raw(), tensor.bytes());
  }
  const auto run = [&] { calls_[index].kernel->run(calls_[index].run); };
  const auto run_all_repeats = [&] {
    for (int i = 0; i < repeats; ++i) run();
  };
  run();  // choices are made, and kernels compiled
  queue_->begin_recording();
  try {
    run_all_repeats();
  } catch (...) {
    queue_->end_recording();
    throw;
  }
  const std::unique_ptr<Recording> recording = queue_->end_recording();
  const auto give = [&] { recording ? recording->replay(*queue_) : run_all_repeats(); };
  give();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < 3; ++round) least = std::min(least, queue_->time(give));
  for (const auto& [tensor, content] : saved)
    queue_->copy(const_cast<void*>(tensor->raw()), content.get(), tensor->bytes());
  queue_->wait();
  return least / repeats;
}

}  // namespace tenon
