#pragma once

#include "ops/inference.h"

namespace tenon::ops {

// What holds for a value that is one or the other: sizes that differ become unknown, ranks that differ give no shape.
ir::Type join(const ir::Type& a, const ir::Type& b);

void infer_if(Inference& i);
void infer_loop(Inference& i);
void infer_scan(Inference& i);

// Version 8 of Scan had a batch axis in front and lengths of the sequences as the first input.
void scan_without_batch(ir::Node& node);

}  // namespace tenon::ops
