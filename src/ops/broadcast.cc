#include "ops/broadcast.h"

namespace tenon::ops {

Broadcast::Broadcast(const Shape& output, std::span<const Shape* const> inputs) : elements_(output.elements()) {
  std::array<int64_t, BroadcastTile::max_inputs> next{};  // elements in the axes passed so far
  next.fill(1);
  for (int axis = output.rank() - 1; axis >= 0; --axis) {
    Axis current{output[axis], {}};
    for (size_t k = 0; k < inputs.size(); ++k) {
      int own = axis - (output.rank() - inputs[k]->rank());
      int64_t size = own >= 0 ? (*inputs[k])[own] : 1;
      current.strides[k] = size == 1 ? 0 : next[k];
      next[k] *= size;
    }
    if (current.size == 1) continue;
    bool merge = !axes_.empty();
    for (size_t k = 0; merge && k < inputs.size(); ++k) {
      merge = current.strides[k] == axes_.back().strides[k] * axes_.back().size;
    }
    if (merge) {
      axes_.back().size *= current.size;
    } else {
      axes_.push_back(current);
    }
  }
  while (axes_.size() < 2) axes_.push_back({1, {}});
}

void Broadcast::tiles(int64_t begin, int64_t end, Body body) const {
  const Axis& column = axes_[0];
  const Axis& row = axes_[1];
  BroadcastTile tile;
  tile.row_stride = row.strides;
  tile.column_stride = column.strides;
  while (begin < end) {
    int64_t first_column = begin % column.size, rest = begin / column.size;
    int64_t first_row = rest % row.size;
    rest /= row.size;
    for (size_t k = 0; k < tile.first.size(); ++k) {
      tile.first[k] = first_column * column.strides[k] + first_row * row.strides[k];
    }
    for (const Axis* axis = outer_begin(); axis != axes_.end(); ++axis) {
      int64_t index = rest % axis->size;
      rest /= axis->size;
      for (size_t k = 0; k < tile.first.size(); ++k) tile.first[k] += index * axis->strides[k];
    }
    tile.output = begin;
    if (first_column != 0 || end - begin < column.size) {
      tile.rows = 1;
      tile.columns = std::min(column.size - first_column, end - begin);
    } else {
      tile.rows = std::min(row.size - first_row, (end - begin) / column.size);
      tile.columns = column.size;
    }
    body(tile);
    begin += tile.rows * tile.columns;
  }
}

void Broadcast::run(ThreadPool& threads, int64_t grain, Body body) const {
  threads.parallel_for(elements_, grain, [&](int64_t begin, int64_t end) { tiles(begin, end, body); });
}

}  // namespace tenon::ops
