#include "tenon/tensor.h"

#include <gtest/gtest.h>

#include "tenon/value.h"

namespace tenon {
namespace {

TEST(SmallVector, GrowsPastItsOwnStorage) {
  SmallVector<std::string, 2> v{"a", "b"};
  v.push_back("c");
  v.insert(v.begin(), "z");
  SmallVector<std::string, 2> copy = v, moved = std::move(v);
  EXPECT_EQ(copy, moved);
  EXPECT_EQ(copy.size(), 4u);
  EXPECT_EQ(copy[0], "z");
  copy.erase(copy.begin());
  copy.resize(2);
  EXPECT_EQ(copy, (SmallVector<std::string, 2>{"a", "b"}));
}

TEST(ElementTypes, SizesAndNames) {
  EXPECT_EQ(byte_size(ElementType::float32, 3), 12);
  EXPECT_EQ(byte_size(ElementType::uint4, 3), 2);
  EXPECT_EQ(byte_size(ElementType::int2, 5), 2);
  EXPECT_EQ(byte_size(ElementType::float6e2m3, 4), 3);
  EXPECT_THROW(byte_size(ElementType::float64, INT64_MAX / 4), Error);
  for (int i = 1; i < element_type_count; ++i) {
    auto type = static_cast<ElementType>(i);
    EXPECT_EQ(element_type_from_name(name_of(type)), type);
    EXPECT_GT(bits_of(type), 0);
  }
}

TEST(Tensor, SharesAndCopies) {
  Tensor a({2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.raw()) % 64, 0u);
  Tensor view = a.reshaped({3, 2});
  EXPECT_EQ(view.raw(), a.raw());
  EXPECT_FALSE(a.sole_owner());
  Tensor row = a.part(3, {3});
  EXPECT_EQ(row.data<float>()[0], 4);
  Tensor copy = a.clone();
  EXPECT_NE(copy.raw(), a.raw());
  EXPECT_TRUE(identical(copy, a));
  EXPECT_FALSE(identical(view, a));
  EXPECT_THROW(a.reshaped({4}), Error);
  EXPECT_THROW(a.data<double>(), Error);
  EXPECT_THROW(Tensor({2}, {1.0f}), Error);
  EXPECT_THROW(Tensor(ElementType::float32, {INT64_MAX, 8}), Error);
  EXPECT_THROW(Tensor(ElementType::float32, {-1}), Error);
}

TEST(Tensor, Strings) {
  Tensor strings({2}, {std::string("a rather long string, past the small ones"), std::string("b")});
  Tensor copy = strings.clone();
  strings.mutable_data<std::string>()[1] = "c";
  EXPECT_EQ(copy.data<std::string>()[1], "b");
}

TEST(Tensor, HugeSizesAreRefusedNotTried) {
  try {
    Tensor(ElementType::uint8, {int64_t{1} << 50});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
}

TEST(Packed, ElementsBelowAByte) {
  for (int bits : {2, 4, 6}) {
    uint8_t data[8] = {};
    for (int i = 0; i < 10; ++i) store_packed(data, bits, i, static_cast<uint8_t>((i * 7) & ((1 << bits) - 1)));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(load_packed(data, bits, i), (i * 7) & ((1 << bits) - 1)) << bits;
  }
}

TEST(Value, SaysWhatItIs) {
  EXPECT_EQ(Value(Tensor({1}, {1.0f})).describe(), "float [1]");
  EXPECT_EQ(Value(Sequence{{Tensor({1}, {1.0f})}}).describe(), "sequence of 1");
  EXPECT_EQ(Value(Optional{}).describe(), "empty optional");
  EXPECT_EQ(Value().describe(), "nothing");
  try {
    Value(Sequence{}).tensor();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "type-mismatch: expected a tensor, got sequence of 0");
  }
}

}  // namespace
}  // namespace tenon
