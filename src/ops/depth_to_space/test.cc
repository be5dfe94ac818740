#include "op_test.h"

namespace tenon {
namespace {

TEST(DepthToSpace, Modes) {
  OpTest("DepthToSpace", 1)
      .attribute("blocksize", 2)
      .input<float>({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7})
      .expect<float>({1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7})
      .run();
  OpTest("DepthToSpace")
      .attribute("blocksize", 2)
      .attribute("mode", "CRD")
      .input<float>({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7})
      .expect<float>({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})
      .run();
  EXPECT_NE(OpTest("DepthToSpace")
                .attribute("blocksize", 2)
                .input<float>({1, 3, 1, 1}, {0, 1, 2})
                .error()
                .find("the depth 3 is no multiple of 4"),
            std::string::npos);
  EXPECT_NE(
      OpTest("DepthToSpace").attribute("blocksize", 0).input<float>({1, 1, 1, 1}, {0}).error().find("blocksize is 0"),
      std::string::npos);
}

TEST(SpaceToDepth, Modes) {
  OpTest("SpaceToDepth", 13)
      .attribute("blocksize", 2)
      .input<float>({1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7})
      .expect<float>({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7})
      .run();
  OpTest("SpaceToDepth")
      .attribute("blocksize", 2)
      .attribute("mode", "CRD")
      .input<std::string>({1, 1, 2, 2}, {"a", "b", "c", "d"})
      .expect<std::string>({1, 4, 1, 1}, {"a", "b", "c", "d"})
      .run();
}

}  // namespace
}  // namespace tenon
