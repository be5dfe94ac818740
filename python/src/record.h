#pragma once

#include <string>

#include "bindings.h"

namespace tenon::python {

// Binds a structure of named members that Python reads: attributes, a text with all of them, and `as_dict`.
template <typename T>
class Record {
 public:
  Record(nb::module_& module, const char* name, const char* doc) : type_(module, name, doc) {
    type_.def("__repr__", [](nb::handle self) {
      std::string text;
      for (nb::handle field : self.type().attr("_fields")) {
        text += (text.empty() ? "" : ", ") + nb::cast<std::string>(field) + "=" + nb::repr(self.attr(field)).c_str();
      }
      return std::string(nb::type_name(self.type()).c_str()) + "(" + text + ")";
    });
    type_.def(
        "as_dict",
        [](nb::handle self) {
          nb::dict values;
          for (nb::handle field : self.type().attr("_fields")) values[field] = plain(self.attr(field));
          return values;
        },
        "The fields as a dict, such as for ``json.dumps``.", nb::sig("def as_dict(self) -> dict[str, typing.Any]"));
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  ~Record() { type_.attr("_fields") = nb::tuple(fields_); }

  template <typename Member>
  Record& field(const char* name, Member T::*member, const char* doc = "") {
    type_.def_ro(name, member, doc);
    fields_.append(name);
    return *this;
  }
  template <typename Getter>
  Record& computed(const char* name, Getter getter, const char* doc, const char* signature) {
    type_.def_prop_ro(name, getter, doc, nb::sig(signature));
    fields_.append(name);
    return *this;
  }

 private:
  static nb::object plain(nb::handle value) {
    if (nb::hasattr(value, "as_dict")) return value.attr("as_dict")();
    if (!nb::isinstance<nb::list>(value)) return nb::borrow(value);
    nb::list items;
    for (nb::handle item : value) items.append(plain(item));
    return items;
  }

  nb::class_<T> type_;
  nb::list fields_;
};

}  // namespace tenon::python
