#include "op_test.h"

namespace tenon {
namespace {

// On the host it gives its input; between two memories it is part of every test of a provider that has one.
TEST(Copy, OnTheHost) {
  OpTest("Copy", 1, "tenon").attribute("to", "host").input<float>({2}, {1, 2}).expect<float>({2}, {1, 2}).run();
  OpTest("Copy", 1, "tenon").attribute("to", "device").input<bool>({1}, {true}).expect<bool>({1}, {true}).run();
}

}  // namespace
}  // namespace tenon
