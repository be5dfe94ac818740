#include "tenon/dim.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/checked.h"

namespace tenon {
namespace {

// A symbol, or a function of sizes that a polynomial cannot express.
struct Atom {
  enum class Kind { symbol, unknown, floor_div, min, max } kind;
  std::string text;  // identity and print form
  Dim a, b;          // arguments of the functions
};
using AtomPtr = std::shared_ptr<const Atom>;

// coefficient * product of atoms, atoms sorted by text.
struct Term {
  int64_t coefficient;
  std::vector<AtomPtr> atoms;
};

bool same_atoms(const Term& a, const Term& b) {
  return std::ranges::equal(a.atoms, b.atoms, [](const AtomPtr& x, const AtomPtr& y) { return x->text == y->text; });
}

// Larger products first, then by text; the constant term comes last.
bool term_before(const Term& a, const Term& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
  return std::ranges::lexicographical_compare(a.atoms, b.atoms,
                                              [](const AtomPtr& x, const AtomPtr& y) { return x->text < y->text; });
}

}  // namespace

struct Dim::Expression {
  std::vector<Term> terms;
};

namespace {

using Expression = Dim::Expression;

// Beyond these an expression says nothing a person or a pass could use, and products of it would grow without end.
constexpr size_t most_terms = 64, most_atoms = 64, longest_atom = 1000;

bool too_large(const Expression& e) {
  if (e.terms.size() > most_terms) return true;
  return std::ranges::any_of(e.terms, [](const Term& term) {
    return term.atoms.size() > most_atoms ||
           std::ranges::any_of(term.atoms, [](const AtomPtr& atom) { return atom->text.size() > longest_atom; });
  });
}

AtomPtr make_atom(Atom::Kind kind, std::string text, Dim a = 0, Dim b = 0) {
  return std::make_shared<const Atom>(Atom{kind, std::move(text), std::move(a), std::move(b)});
}

Expression unknown_expression() {
  static std::atomic<int64_t> count = 0;
  return {{{1, {make_atom(Atom::Kind::unknown, "?" + std::to_string(++count))}}}};
}

// Sorts, merges and drops zero terms. A size whose coefficients do not fit is unknown.
Expression normalized(std::vector<Term> terms) {
  std::ranges::stable_sort(terms, term_before);
  Expression result;
  for (Term& term : terms) {
    if (!result.terms.empty() && same_atoms(result.terms.back(), term)) {
      int64_t& sum = result.terms.back().coefficient;
      if (__builtin_add_overflow(sum, term.coefficient, &sum)) return unknown_expression();
    } else {
      result.terms.push_back(std::move(term));
    }
  }
  std::erase_if(result.terms, [](const Term& t) { return t.coefficient == 0; });
  return result;
}

std::string print(const Term& term) {
  std::string text;
  if (term.coefficient == -1 && !term.atoms.empty())
    text = "-";
  else if (term.coefficient != 1 || term.atoms.empty())
    text = std::to_string(term.coefficient);
  for (const AtomPtr& atom : term.atoms) {
    if (!text.empty() && text != "-") text += '*';
    text += atom->kind == Atom::Kind::unknown ? "?" : atom->text;
  }
  return text;
}

}  // namespace

Dim::Dim(std::shared_ptr<const Expression> expression) {
  if (too_large(*expression)) {
    *this = unknown();
  } else if (expression->terms.empty()) {
    number_ = 0;
  } else if (expression->terms.size() == 1 && expression->terms[0].atoms.empty()) {
    number_ = expression->terms[0].coefficient;
  } else {
    expression_ = std::move(expression);
  }
}

namespace {

std::vector<Term> terms_of(const Dim& dim, const std::shared_ptr<const Expression>& expression) {
  if (expression) return expression->terms;
  return dim.value() == 0 ? std::vector<Term>{} : std::vector<Term>{{dim.value(), {}}};
}

}  // namespace

Dim Dim::symbol(std::string name) {
  return Dim(std::make_shared<const Expression>(Expression{{{1, {make_atom(Atom::Kind::symbol, std::move(name))}}}}));
}

Dim Dim::unknown() { return Dim(std::make_shared<const Expression>(unknown_expression())); }

std::string_view Dim::symbol_name() const {
  if (!expression_ || expression_->terms.size() != 1) return {};
  const Term& term = expression_->terms[0];
  if (term.coefficient != 1 || term.atoms.size() != 1 || term.atoms[0]->kind != Atom::Kind::symbol) return {};
  return term.atoms[0]->text;
}

bool Dim::has_unknown() const {
  if (!expression_) return false;
  for (const Term& term : expression_->terms) {
    for (const AtomPtr& atom : term.atoms) {
      if (atom->kind == Atom::Kind::unknown || atom->a.has_unknown() || atom->b.has_unknown()) return true;
    }
  }
  return false;
}

namespace {

bool is_never_negative(const Atom& atom) {
  auto holds = [](const Dim& dim) { return dim.least().value_or(-1) >= 0; };
  switch (atom.kind) {
    case Atom::Kind::symbol:
      return true;
    case Atom::Kind::unknown:
      return false;
    case Atom::Kind::max:
      return holds(atom.a) || holds(atom.b);
    default:
      return holds(atom.a) && holds(atom.b);
  }
}

}  // namespace

std::optional<int64_t> Dim::least() const {
  if (!expression_) return number_;
  int64_t least = 0;
  for (const Term& term : expression_->terms) {
    if (term.atoms.empty())
      least = term.coefficient;
    else if (term.coefficient < 0 ||
             !std::ranges::all_of(term.atoms, [](const AtomPtr& atom) { return is_never_negative(*atom); }))
      return std::nullopt;
  }
  return least;
}

std::string Dim::to_string() const {
  if (!expression_) return std::to_string(number_);
  if (has_unknown()) return "?";
  std::string text;
  for (const Term& term : expression_->terms) {
    std::string part = print(term);
    if (text.empty())
      text = part;
    else if (part[0] == '-')
      text += " - " + part.substr(1);
    else
      text += " + " + part;
  }
  return text;
}

namespace {

// Identity of an expression, where unknowns keep their numbers.
std::string key(const Dim& dim, const std::shared_ptr<const Expression>& expression) {
  if (!expression) return std::to_string(dim.value());
  std::string text;
  for (const Term& term : expression->terms) {
    if (!text.empty()) text += " + ";
    text += std::to_string(term.coefficient);
    for (const AtomPtr& atom : term.atoms) text += "*" + atom->text;
  }
  return text;
}

std::optional<int64_t> evaluate_atom(const Atom& atom, const Dim::Lookup& lookup) {
  if (atom.kind == Atom::Kind::symbol || atom.kind == Atom::Kind::unknown) return lookup(atom.text);
  auto a = atom.a.evaluate(lookup), b = atom.b.evaluate(lookup);
  if (!a || !b) return std::nullopt;
  Dim result = 0;
  switch (atom.kind) {
    case Atom::Kind::floor_div:
      result = floor_div(Dim(*a), Dim(*b));
      break;
    case Atom::Kind::min:
      result = min(Dim(*a), Dim(*b));
      break;
    default:
      result = max(Dim(*a), Dim(*b));
      break;
  }
  if (!result.is_known()) return std::nullopt;
  return result.value();
}

}  // namespace

std::optional<int64_t> Dim::evaluate(const Lookup& lookup) const {
  if (!expression_) return number_;
  int64_t sum = 0;
  for (const Term& term : expression_->terms) {
    int64_t product = term.coefficient;
    for (const AtomPtr& atom : term.atoms) {
      auto value = evaluate_atom(*atom, lookup);
      if (!value) return std::nullopt;
      product = checked_mul(product, *value);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return checked_add(a.number_, b.number_);
  std::vector<Term> terms = terms_of(a, a.expression_);
  for (Term& term : terms_of(b, b.expression_)) terms.push_back(std::move(term));
  return Dim(std::make_shared<const Expression>(normalized(std::move(terms))));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return checked_mul(a.number_, b.number_);
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  std::vector<Term> terms;
  for (const Term& x : terms_of(a, a.expression_)) {
    for (const Term& y : terms_of(b, b.expression_)) {
      Term product{0, {}};
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &product.coefficient)) return Dim::unknown();
      std::ranges::merge(x.atoms, y.atoms, std::back_inserter(product.atoms),
                         [](const AtomPtr& p, const AtomPtr& q) { return p->text < q->text; });
      terms.push_back(std::move(product));
    }
  }
  return Dim(std::make_shared<const Expression>(normalized(std::move(terms))));
}

namespace {

// a / b if every term of a is a multiple of the single term b.
std::optional<std::vector<Term>> divide_exactly(const std::vector<Term>& a, const Term& b) {
  std::vector<Term> result;
  for (const Term& term : a) {
    if (b.coefficient == 0 || (b.coefficient == -1 && term.coefficient == INT64_MIN)) return std::nullopt;
    if (term.coefficient % b.coefficient != 0) return std::nullopt;
    Term quotient{term.coefficient / b.coefficient, term.atoms};
    for (const AtomPtr& atom : b.atoms) {
      auto found = std::ranges::find_if(quotient.atoms, [&](const AtomPtr& x) { return x->text == atom->text; });
      if (found == quotient.atoms.end()) return std::nullopt;
      quotient.atoms.erase(found);
    }
    result.push_back(std::move(quotient));
  }
  return result;
}

}  // namespace

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is(0)) return Dim::unknown();
  if (b.is(1)) return a;
  if (a.is_known() && b.is_known()) {
    if (b.number_ == -1) return Dim(0) - a;
    int64_t quotient = a.number_ / b.number_;
    return quotient - (a.number_ % b.number_ != 0 && (a.number_ < 0) != (b.number_ < 0));
  }
  if (a == b) return 1;
  std::vector<Term> divisor = terms_of(b, b.expression_);
  if (divisor.size() == 1) {
    if (auto quotient = divide_exactly(terms_of(a, a.expression_), divisor[0])) {
      return Dim(std::make_shared<const Expression>(normalized(std::move(*quotient))));
    }
  }
  // Long division: (256*past + 256*seq) / (past + seq) is 256.
  Dim quotient = 0, rest = a;
  for (size_t step = 0; divisor.size() > 1 && step < divisor.size() + most_terms && !rest.is(0); ++step) {
    auto part = divide_exactly({terms_of(rest, rest.expression_)[0]}, divisor[0]);
    if (!part) break;
    const Dim next(std::make_shared<const Expression>(normalized(std::move(*part))));
    quotient = quotient + next;
    rest = rest - next * b;
  }
  if (divisor.size() > 1 && rest.is(0)) return quotient;
  if (b.is_known()) {
    // A common factor changes nothing: floor(80*h / 1280) is floor(h / 16).
    int64_t factor = std::gcd(b.number_, int64_t{0});
    for (const Term& term : terms_of(a, a.expression_)) factor = std::gcd(factor, term.coefficient);
    if (factor > 1) {
      std::vector<Term> smaller = terms_of(a, a.expression_);
      for (Term& term : smaller) term.coefficient /= factor;
      return floor_div(Dim(std::make_shared<const Expression>(Expression{std::move(smaller)})), b.number_ / factor);
    }
  }
  auto operand = [](const std::string& text) {
    return text.find_first_of(" */") == std::string::npos ? text : "(" + text + ")";
  };
  std::string text = "floor(" + operand(key(a, a.expression_)) + "/" + operand(key(b, b.expression_)) + ")";
  if (!a.has_unknown() && !b.has_unknown())
    text = "floor(" + operand(a.to_string()) + "/" + operand(b.to_string()) + ")";
  auto atom = make_atom(Atom::Kind::floor_div, std::move(text), a, b);
  return Dim(std::make_shared<const Expression>(Expression{{{1, {std::move(atom)}}}}));
}

Dim ceil_div(const Dim& a, const Dim& b) { return floor_div(a + b - Dim(1), b); }

Dim exact_div(const Dim& a, const Dim& b) { return floor_div(a, b); }

namespace {

// min and max share everything but the comparison; a difference that is a number decides at once.
template <bool smaller>
std::optional<Dim> choose(const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (!difference.is_known()) return std::nullopt;
  return (difference.value() < 0) == smaller ? a : b;
}

}  // namespace

Dim min(const Dim& a, const Dim& b) {
  if (auto chosen = choose<true>(a, b)) return *chosen;
  auto atom = make_atom(Atom::Kind::min, "min(" + key(a, a.expression_) + ", " + key(b, b.expression_) + ")", a, b);
  return Dim(std::make_shared<const Expression>(Expression{{{1, {std::move(atom)}}}}));
}

Dim max(const Dim& a, const Dim& b) {
  if (auto chosen = choose<false>(a, b)) return *chosen;
  auto atom = make_atom(Atom::Kind::max, "max(" + key(a, a.expression_) + ", " + key(b, b.expression_) + ")", a, b);
  return Dim(std::make_shared<const Expression>(Expression{{{1, {std::move(atom)}}}}));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_known() || b.is_known()) return a.is_known() && b.is_known() && a.number_ == b.number_;
  if (a.expression_ == b.expression_) return true;
  const auto& x = a.expression_->terms;
  const auto& y = b.expression_->terms;
  return std::ranges::equal(
      x, y, [](const Term& s, const Term& t) { return s.coefficient == t.coefficient && same_atoms(s, t); });
}

SymbolicShape symbolic(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::optional<Shape> concrete(const SymbolicShape& shape) {
  Shape result;
  for (const Dim& dim : shape) {
    if (!dim.is_known()) return std::nullopt;
    result.push_back(dim.value());
  }
  return result;
}

std::string to_string(const SymbolicShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) text += ", ";
    text += shape[i].to_string();
  }
  return text + "]";
}

Dim element_count(const SymbolicShape& shape) {
  Dim product = 1;
  for (const Dim& dim : shape) product = product * dim;
  return product;
}

}  // namespace tenon
