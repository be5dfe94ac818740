#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "provider/kernel.h"

namespace tenon {

// Beside a program that is compiled: takes what its kernels pack, or has what they packed when it was compiled before.
class PackedArchive {
 public:
  virtual ~PackedArchive() = default;
  // Whether this may be packed.
  virtual bool has(const PackedConstants::Key& key) = 0;
  // For what is packed next.
  virtual PackedStorage& storage(const PackedConstants::Key& key) = 0;
};

// Notes what is packed, so that it can be written.
class RecordedPacking final : public PackedArchive, PackedStorage {
 public:
  struct Entry {
    std::string key;
    std::vector<PackedBuffer> buffers;
  };

  bool has(const PackedConstants::Key&) override { return true; }
  PackedStorage& storage(const PackedConstants::Key& key) override;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  bool fills() const override { return true; }
  PackedBuffer get(size_t bytes, FunctionRef<void(void*)> fill) override;

  std::vector<Entry> entries_;
};

// What was packed, in the order in which it was. A program that asks for anything else was compiled by other code, or
// of another graph: that throws ErrorCode::damaged_file, and no number is used.
class StoredPacking final : public PackedArchive, PackedStorage {
 public:
  struct Entry {
    std::string key;
    std::vector<std::span<const std::byte>> pieces;
  };

  StoredPacking(std::shared_ptr<const MappedFile> file, std::vector<Entry> entries)
      : file_(std::move(file)), entries_(std::move(entries)) {}

  bool has(const PackedConstants::Key& key) override;
  PackedStorage& storage(const PackedConstants::Key& key) override;
  // Throws unless everything was asked for.
  void require_all_used() const;

 private:
  bool fills() const override { return false; }
  PackedBuffer get(size_t bytes, FunctionRef<void(void*)> fill) override;
  void require_all_pieces_used() const;

  std::shared_ptr<const MappedFile> file_;
  std::vector<Entry> entries_;
  size_t next_ = 0, next_piece_ = 0;  // the entry after the current one; its next piece
  std::set<PackedConstants::Key> used_;
};

}  // namespace tenon
