// Kernels that work on rows: the elements along some axes of a tensor, for each place on the others.
#pragma once

#include "ops/cuda_support/loop.h"
#include "ops/reduce/plan.h"

namespace tenon::ops {

// The text of a kernel in which a group of threads works on each row. Where rows are short enough, threads hold their
// elements in registers, so that memory is read once. Where rows lie in one piece, use_packs() has each thread read and
// write 16 bytes at once.
//
//   CudaRows rows(ReducePlan(x.shape(), axes));
//   std::string text = rows.begin() + "A sum = 0;" + rows.each("sum += value;") +
//                      "sum = " + rows.fold("Sum", "sum") + "; if (is_first) y[row] = sum;";
//   CudaBlocks(run, "const T* x, A* y", CudaRows::functions() + types_text(x.type()), text, rows.numbers(),
//   rows.grid());
class CudaRows {
 public:
  // `parts`: each row is shared by so many groups, whose number is blockIdx.y. Then fold() is over one part.
  explicit CudaRows(const ReducePlan& plan, int64_t parts = 1);

  // How many threads work on a row.
  int64_t group() const { return group_; }
  int64_t rows() const { return rows_; }
  int64_t size() const { return size_; }

  // How elements are read: an expression of e, the element's place in the tensor, and i, its place in the row. Without
  // it they are widen(x[e]) of type A.
  void set_elements(std::string_view type, std::string_view load) {
    type_ = type;
    load_ = load;
  }
  // Something that load and bodies read, or write, only as name[index]; index is text of e or i that goes up by one
  // with them ("e", "i", "row * size + i").
  struct Array {
    std::string_view name;
    ElementType type;
    std::string index;
    bool is_written = false;
  };
  // Before begin() and grid(). Rows whose size or place does not allow it are read by elements, as without.
  void use_packs(std::vector<Array> arrays);
  // Declares row, size (of a row), is_row (false for threads that have none) and is_first (one thread of each row).
  std::string begin() const;
  // Whether threads hold the elements. Then statements may set `kept`, which is `value` from then on.
  bool holds() const { return items_ > 0; }
  // Statements for each element, of value, e and i. Threads that have no row do nothing.
  std::string each(std::string_view body) const;
  // What merging `value` of all threads of the row with `op` gives; op has a function merge. Only outside of each().
  std::string fold(std::string_view op, std::string_view value) const;

  // Functions that the text needs, and the operations Sum, Product, Largest and Smallest.
  static std::string functions();
  // The kernel's first numbers; more may follow.
  const std::vector<int64_t>& numbers() const { return numbers_; }
  cuda::Grid grid() const;

 private:
  // As many threads for each row as have enough to do with pack_ elements at a time.
  void share_rows();
  // Statements `before` and `body` for each element of each pack.
  std::string each_pack(std::string_view before, std::string_view body) const;

  int64_t rows_, size_, parts_;
  bool side_by_side_;  // neighbouring rows are neighbours in memory
  bool in_one_piece_;  // and so are the elements of a row
  int group_ = 1, items_ = 0, per_block_ = 1, pack_ = 1;
  std::vector<Array> arrays_;
  std::string base_, offset_, type_ = "A", load_ = "widen(x[e])";
  std::vector<int64_t> numbers_;
};

}  // namespace tenon::ops
