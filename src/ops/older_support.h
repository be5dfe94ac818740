// What the older forms of several operators share.
#pragma once

#include <vector>

#include "ops/decomposition.h"

namespace tenon::ops {

// 0, 1, … count - 1.
std::vector<int64_t> numbers_up_to(int64_t count);

// The axes, of which negative ones count from the end of `rank` axes, as truth values of each axis.
Term axis_mask(Term axes, int64_t rank);

// The positions at which a list of `count` truth values is true; there are `how_many`, or any number when that is -1.
Term true_positions(Term mask, int64_t how_many);

// Whether a tensor may be empty, as far as its sizes say; those that are given a name are taken not to be 0.
bool may_be_empty(const ir::Value& value);

// A Reshape of a tensor of which that is known. Older versions have no way to say a size of 0.
Term reshape(Term x, Term shape, bool may_be_empty);

// One element of any type whose bits are all 0.
Tensor zero_element(ElementType type);

// An integer division that rounds up, of numbers that are not negative.
Term divide_up(Term a, Term b);

// A node with several outputs.
std::vector<Term> add_with_outputs(Decomposition& d, const char* op, const std::vector<Term>& inputs,
                                   const std::vector<ElementType>& outputs,
                                   std::initializer_list<Setting> attributes = {});

}  // namespace tenon::ops
