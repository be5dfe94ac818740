#include "tenon/dim.h"

#include <gtest/gtest.h>

#include "tenon/error.h"

namespace tenon {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

TEST(Dim, PrintsCanonically) {
  struct Case {
    Dim dim;
    const char* text;
  } cases[] = {
      {Dim(3) + Dim(4), "7"},
      {n + m, "m + n"},
      {m + n - m, "n"},
      {n - n, "0"},
      {Dim(2) * (n + Dim(1)) - Dim(2), "2*n"},
      {n * m * Dim(3), "3*m*n"},
      {n - Dim(5), "n - 5"},
      {Dim(0) - n, "-n"},
      {floor_div(n * Dim(4) + Dim(8), Dim(4)), "n + 2"},
      {floor_div(n * m, n), "m"},
      {floor_div((n + m) * Dim(256), n * Dim(32) + m * Dim(32)), "8"},
      {floor_div((n + m) * (n + Dim(1)), n + m), "n + 1"},
      {floor_div(n + m + Dim(1), n + m), "floor((m + n + 1)/(m + n))"},
      {floor_div(n, Dim(2)), "floor(n/2)"},
      {floor_div(n * Dim(80), Dim(1280)), "floor(n/16)"},
      {floor_div(n * Dim(4) + Dim(2), Dim(6)), "floor((2*n + 1)/3)"},
      {floor_div(Dim(7), Dim(-2)), "-4"},
      {ceil_div(Dim(7), Dim(2)), "4"},
      {min(n, n + Dim(1)), "n"},
      {max(n, n + Dim(1)), "n + 1"},
      {Dim::unknown() + Dim(1), "?"},
  };
  for (const Case& c : cases) EXPECT_EQ(c.dim.to_string(), c.text);
}

TEST(Dim, EqualityIsStructural) {
  EXPECT_EQ((n + Dim(1)) * (n - Dim(1)), n * n - Dim(1));
  EXPECT_EQ(floor_div(n + Dim(1), Dim(2)) * m, m * floor_div(Dim(1) + n, Dim(2)));
  EXPECT_FALSE(n == m);
  Dim unknown = Dim::unknown();
  EXPECT_EQ(unknown, unknown);
  EXPECT_FALSE(unknown == Dim::unknown());
}

TEST(Dim, Evaluates) {
  auto lookup = [](const std::string& name) -> std::optional<int64_t> {
    if (name == "n") return 9;
    return std::nullopt;
  };
  EXPECT_EQ((floor_div(n + Dim(1), Dim(4)) * n + min(n, Dim(5))).evaluate(lookup), 23);
  EXPECT_EQ((n + m).evaluate(lookup), std::nullopt);
}

TEST(Dim, OverflowThrows) { EXPECT_THROW(Dim(INT64_MAX) * Dim(2), Error); }

TEST(Dim, ExpressionsStaySmall) {
  Dim product = n, nested = n;
  for (int i = 0; i < 100; ++i) {
    product = product * (product + m);
    nested = min(nested * Dim(2), floor_div(nested + n, m));
  }
  EXPECT_LT(product.to_string().size(), 10000u);
  EXPECT_LT(nested.to_string().size(), 10000u);
}

TEST(Dim, LeastIsWhatIsEvident) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), any = Dim::unknown();
  EXPECT_EQ(Dim(-3).least(), -3);
  EXPECT_EQ(n.least(), 0);
  EXPECT_EQ((Dim(2) * n * m + Dim(5)).least(), 5);
  EXPECT_EQ((n - Dim(1)).least(), -1);
  EXPECT_EQ(floor_div(n + Dim(1), Dim(2)).least(), 0);
  EXPECT_EQ((max(n - m, 0) + Dim(1)).least(), 1);
  for (const Dim& dim : {n - m, any, any + n, any * any, min(n - m, 0), floor_div(n - m, Dim(2))})
    EXPECT_EQ(dim.least(), std::nullopt) << dim.to_string();
}

TEST(Dim, SymbolNames) {
  EXPECT_EQ(n.symbol_name(), "n");
  EXPECT_EQ((n + Dim(1)).symbol_name(), "");
  EXPECT_EQ(Dim::unknown().symbol_name(), "");
}

}  // namespace
}  // namespace tenon
