#include "ops/stand_in.h"

namespace tenon::ops {

const std::shared_ptr<const Operator>& stand_in_operator() {
  static const std::shared_ptr<const Operator> stand_in = [] {
    auto op = std::make_shared<Operator>();
    op->name = "stand-in";
    op->versions = {1};
    return op;
  }();
  return stand_in;
}

}  // namespace tenon::ops
