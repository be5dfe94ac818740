#include "ops/decomposition.h"
#include "ops/elementwise.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

bool holds_sizes(ElementType type) { return types::index.contains(type) || type == ElementType::uint64; }

Dim same(std::span<const Dim> v) { return v[0]; }
Dim truth(std::span<const Dim> v) { return v[0].is_known() ? Dim(v[0].value() != 0) : Dim::unknown(); }

void infer_cast(Inference& i, ElementType to) {
  ir::Type type = i.type(0);
  type.element = to;
  i.output(0, std::move(type));
  if (i.node().input_count() > 1) return;
  if (holds_sizes(to)) infer_values(i, same);
  if (to == ElementType::boolean) infer_values(i, truth);
}

void decompose_cast_like(Decomposition& d) {
  const ir::Node& node = d.node();
  d.output(0, d.add("Cast", {d.input(0)},
                    {{"to", d.element(1)},
                     {"saturate", node.int_attribute("saturate", 1)},
                     {"round_mode", node.string_attribute("round_mode", "up")}},
                    d.element(1)));
}

// The first version names the type. Nodes that adapters add number it whatever the version.
void name_to_number(ir::Node& node) {
  const ir::Attribute* to = node.attribute("to");
  if (to && to->kind == AttributeKind::int_) return;
  std::string name = node.string_attribute("to", "");
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  auto type = element_type_from_name(name);
  node.set_attribute({"to", static_cast<int64_t>(type.value_or(ElementType::undefined))});
}

}  // namespace

void define_cast(OperatorList& list) {
  constexpr TypeSet castable = types::all - types::complexes;
  list.add("Cast", {1, 6, 9, 13, 19, 21, 23, 24, 25, 28})
      .input("input", castable)
      .output("output", castable)
      .required_attribute("to", AttributeKind::int_)
      .attribute("saturate", AttributeKind::int_)
      .attribute("round_mode", AttributeKind::string)
      .infer([](Inference& i) { infer_cast(i, i.element_attribute("to")); })
      .attribute_since(19, "saturate", 1)
      .attribute_since(24, "round_mode", "up")
      .lift(1, 6, name_to_number);
  list.add("CastLike", {15, 19, 21, 23, 24, 25})
      .input("input", castable)
      .input("target_type", castable)
      .output("output", castable)
      .attribute("saturate", AttributeKind::int_)
      .attribute("round_mode", AttributeKind::string)
      .infer([](Inference& i) { infer_cast(i, i.element(1)); })
      .decompose(decompose_cast_like);
  list.add("BitCast", {26})
      .input("input", types::all - types::strings)
      .output("output", types::all - types::strings)
      .required_attribute("to", AttributeKind::int_)
      .infer([](Inference& i) {
        ir::Type type = i.type(0);
        ElementType to = i.element_attribute("to");
        if (to == ElementType::string || bits_of(to) != bits_of(type.element)) {
          i.fail_with(ErrorCode::invalid_attribute,
                      fmt::format("{} has {} bits, {} has {}: a BitCast keeps them", name_of(type.element),
                                  bits_of(type.element), name_of(to), bits_of(to)));
        }
        type.element = to;
        i.output(0, std::move(type));
      });
}

}  // namespace tenon::ops
