#include "ops/cuda_support/expressions.h"

#include <algorithm>

namespace tenon::ops {
namespace {

struct Expression {
  std::string_view op, text;
};

// $a and $b are the operands, $p and $q the parameters, $T the operands' type.
constexpr Expression expressions[] = {
    {"Abs", "($a <= ($T)0 ? ($T)0 - $a : $a)"},
    {"Acos", "acos($a)"},
    {"Acosh", "acosh($a)"},
    {"Add", "($a + $b)"},
    {"And", "($a && $b)"},
    {"Asin", "asin($a)"},
    {"Asinh", "asinh($a)"},
    {"Atan", "atan($a)"},
    {"Atanh", "atanh($a)"},
    {"BitwiseAnd", "($a & $b)"},
    {"BitwiseNot", "(~$a)"},
    {"BitwiseOr", "($a | $b)"},
    {"BitwiseXor", "($a ^ $b)"},
    {"Ceil", "ceil($a)"},
    {"Celu", "($a > ($T)0 ? $a : $p * expm1($a / $p))"},
    {"Clip", "least(most($a, ($T)$p), ($T)$q)"},
    {"Cos", "cos($a)"},
    {"Cosh", "cosh($a)"},
    {"Div", "($a / $b)"},
    {"Elu", "($a > ($T)0 ? $a : $p * expm1($a))"},
    {"Equal", "($a == $b)"},
    {"Erf", "erf(real($a))"},
    {"Exp", "exp($a)"},
    {"Floor", "floor($a)"},
    {"HalfGelu", "short_gelu($a)"},
    {"Gelu", "(($T)0.5 * $a * (($T)1 + erf($a * ($T)0.70710678118654752)))"},
    {"Greater", "($a > $b)"},
    {"GreaterOrEqual", "($a >= $b)"},
    {"HardSigmoid", "most(($T)0, least(($T)1, $p * $a + $q))"},
    {"HardSwish", "($a * most(($T)0, least(($T)1, $a * (($T)1 / ($T)6) + ($T)0.5)))"},
    {"LeakyRelu", "($a < ($T)0 ? $p * $a : $a)"},
    {"Less", "($a < $b)"},
    {"LessOrEqual", "($a <= $b)"},
    {"Log", "log($a)"},
    {"Max", "most($a, $b)"},
    {"Min", "least($a, $b)"},
    {"Mish", "($a * tanh(softplus($a)))"},
    {"Mul", "($a * $b)"},
    {"Neg", "(-$a)"},
    {"Not", "(!$a)"},
    {"Or", "($a || $b)"},
    {"PRelu", "($a < ($T)0 ? $a * $b : $a)"},
    {"Pow", "power($a, $p)"},
    {"Reciprocal", "(($T)1 / $a)"},
    {"Relu", "($a < ($T)0 ? ($T)0 : $a)"},
    {"Round", "rint($a)"},
    {"Selu", "($q * ($a > ($T)0 ? $a : $p * expm1($a)))"},
    {"Shrink", "($a < -$p ? $a + $q : $a > $p ? $a - $q : ($T)0)"},
    {"Sigmoid", "(($T)1 / (($T)1 + exp(-$a)))"},
    {"Sign", "(is_nan($a) ? $a : ($T)(($a > ($T)0) - ($a < ($T)0)))"},
    {"Sin", "sin($a)"},
    {"Sinh", "sinh($a)"},
    {"Softplus", "softplus($a)"},
    {"Softsign", "($a / (($T)1 + fabs($a)))"},
    {"Sqrt", "sqrt($a)"},
    {"Sub", "($a - $b)"},
    {"Swish", "($a / (($T)1 + exp(-($p * $a))))"},
    {"Tan", "tan($a)"},
    {"Tanh", "tanh($a)"},
    {"TanhGelu", "(($T)0.5 * $a * (($T)1 + tanh(($T)0.7978845608028654 * ($a + ($T)0.044715 * $a * $a * $a))))"},
    {"ThresholdedRelu", "($a > $p ? $a : ($T)0)"},
    {"Xor", "($a != $b)"},
};

}  // namespace

std::string expression_text(std::string_view op, std::string_view type, std::span<const std::string> operands,
                            std::span<const std::string> parameters) {
  auto found = std::ranges::find(expressions, op, &Expression::op);
  if (found == std::end(expressions)) return "";
  std::string result;
  for (size_t i = 0; i < found->text.size(); ++i) {
    if (found->text[i] != '$') {
      result += found->text[i];
      continue;
    }
    const char name = found->text[++i];
    if (name == 'T')
      result += type;
    else if (name == 'p' || name == 'q')
      result += parameters[static_cast<size_t>(name - 'p')];
    else
      result += operands[static_cast<size_t>(name - 'a')];
  }
  return result;
}

}  // namespace tenon::ops
