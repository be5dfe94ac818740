#include "op_test.h"

namespace tenon {
namespace {

Tensor tensor(std::initializer_list<float> values) {
  return Tensor(Shape{static_cast<int64_t>(values.size())}, values);
}
Sequence three() { return Sequence{{tensor({1}), tensor({2}), tensor({3})}}; }

TEST(Sequence, MakeAndRead) {
  OpTest("SequenceConstruct").input(tensor({1})).input(tensor({2})).input(tensor({3})).expect(three()).run();
  OpTest("SequenceEmpty").expect(Sequence{}).run();
  OpTest("SequenceAt").input(three()).input<int64_t>({}, {-1}).expect(tensor({3})).run();
  OpTest("SequenceLength").input(three()).expect<int64_t>({}, {3}).run();
  EXPECT_NE(OpTest("SequenceAt")
                .input(three())
                .input<int32_t>({}, {3})
                .error()
                .find("position 3 is out of range for a sequence of 3"),
            std::string::npos);
}

TEST(Sequence, InsertAndErase) {
  Sequence two{{tensor({2}), tensor({3})}};
  OpTest("SequenceInsert").input(two).input(tensor({1})).input<int64_t>({}, {0}).expect(three()).run();
  OpTest("SequenceInsert").input(Sequence{{tensor({1}), tensor({2})}}).input(tensor({3})).expect(three()).run();
  OpTest("SequenceErase").input(three()).input<int64_t>({}, {0}).expect(two).run();
  OpTest("SequenceErase").input(three()).expect(Sequence{{tensor({1}), tensor({2})}}).run();
  EXPECT_NE(OpTest("SequenceInsert")
                .input(two)
                .input(tensor({1}))
                .input<int64_t>({}, {-3})
                .error()
                .find("position -3 is out of range"),
            std::string::npos);
}

TEST(Sequence, SplitAndConcat) {
  OpTest("SplitToSequence").input(tensor({1, 2, 3})).expect(three()).run();
  OpTest("SplitToSequence", 11)
      .input(tensor({1, 2, 3}))
      .input<int64_t>({}, {2})
      .expect(Sequence{{tensor({1, 2}), tensor({3})}})
      .run();
  OpTest("SplitToSequence")
      .attribute("axis", 1)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int32_t>({2}, {0, 2})
      .expect(Sequence{{Tensor(ElementType::float32, Shape{2, 0}), Tensor(Shape{2, 2}, {1.0f, 2.0f, 3.0f, 4.0f})}})
      .run();
  OpTest("SplitToSequence")
      .attribute("keepdims", 0)
      .input(tensor({1, 2}))
      .expect(Sequence{{Tensor(Shape{}, {1.0f}), Tensor(Shape{}, {2.0f})}})
      .run();
  OpTest("ConcatFromSequence").attribute("axis", 0).input(three()).expect(tensor({1, 2, 3})).run();
  OpTest("ConcatFromSequence")
      .attribute("axis", -1)
      .attribute("new_axis", 1)
      .input(three())
      .expect<float>({1, 3}, {1, 2, 3})
      .run();
  EXPECT_NE(
      OpTest("SplitToSequence").input(tensor({1, 2})).input<int64_t>({}, {0}).error().find("parts cannot have size 0"),
      std::string::npos);
  EXPECT_NE(OpTest("ConcatFromSequence")
                .attribute("axis", 0)
                .attribute("new_axis", 1)
                .input(Sequence{{tensor({1}), tensor({1, 2})}})
                .error()
                .find("items 0 and 1 have shapes [1] and [2]"),
            std::string::npos);
}

TEST(Sequence, Map) {
  auto body = std::make_unique<ir::Graph>();
  body->name = "body";
  ir::Value &item = body->add_value("item"), &more = body->add_value("more"), &joined = body->add_value("joined");
  item.type = more.type = ir::Type::tensor(ElementType::float32);
  body->add_input(item);
  body->add_input(more);
  ir::Node& node = body->add_node("Concat");
  node.add_input(&item);
  node.add_input(&more);
  node.add_output(&joined);
  node.set_attribute(ir::Attribute("axis", int64_t{0}));
  body->add_output(joined);
  OpTest("SequenceMap")
      .attribute("body", std::move(body))
      .input(three())
      .input(tensor({9}))
      .expect(Sequence{{tensor({1, 9}), tensor({2, 9}), tensor({3, 9})}})
      .run();
}

TEST(SplitToSequence, ALongEmptyAxisExceedsMemory) {
  std::string error = OpTest("SplitToSequence")
                          .input(Tensor(ElementType::float32, Shape{int64_t{1} << 40, 0}))
                          .expect(Sequence{})
                          .error();
  EXPECT_TRUE(error.starts_with("out-of-memory in SplitToSequence 'tested' (node 0)")) << error;
}

}  // namespace
}  // namespace tenon
