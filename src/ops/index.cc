#include "ops/operator.h"

namespace tenon::ops {

#define FOLDER(name) void define_##name(OperatorList&);
#include "ops/folders.def"
#undef FOLDER

const OperatorList& operators() {
  static const OperatorList list = [] {
    OperatorList all;
#define FOLDER(name) define_##name(all);
#include "ops/folders.def"
#undef FOLDER
    return all;
  }();
  return list;
}

}  // namespace tenon::ops
