#include "session/packed_archive.h"

#include "base/fail.h"

namespace tenon {
namespace {

std::string text_of(const PackedConstants::Key& key) {
  std::string text = key.type.name();
  for (const ir::Value* value : key.constants) text += "\n" + (value ? value->name : std::string());
  return text + "\n\n" + key.layout;
}

[[noreturn]] void fail_to_match() {
  fail(ErrorCode::damaged_file, "its packed weights are not those that its graph asks for");
}

}  // namespace

PackedStorage& RecordedPacking::storage(const PackedConstants::Key& key) {
  entries_.push_back({text_of(key), {}});
  return *this;
}

PackedBuffer RecordedPacking::get(size_t bytes, FunctionRef<void(void*)> fill) {
  return entries_.back().buffers.emplace_back(make_packed(bytes, fill));
}

bool StoredPacking::has(const PackedConstants::Key& key) {
  return used_.contains(key) || (next_ < entries_.size() && entries_[next_].key == text_of(key));
}

PackedStorage& StoredPacking::storage(const PackedConstants::Key& key) {
  require_all_pieces_used();
  used_.insert(key);
  ++next_;
  next_piece_ = 0;
  return *this;
}

PackedBuffer StoredPacking::get(size_t bytes, FunctionRef<void(void*)>) {
  const Entry& entry = entries_[next_ - 1];
  if (next_piece_ == entry.pieces.size() || entry.pieces[next_piece_].size() != bytes) fail_to_match();
  return {{file_, entry.pieces[next_piece_++].data()}, bytes};
}

void StoredPacking::require_all_pieces_used() const {
  if (next_ > 0 && next_piece_ != entries_[next_ - 1].pieces.size()) fail_to_match();
}

void StoredPacking::require_all_used() const {
  require_all_pieces_used();
  if (next_ != entries_.size()) fail_to_match();
}

}  // namespace tenon
