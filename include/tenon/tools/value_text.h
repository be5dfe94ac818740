#pragma once

#include <string>
#include <vector>

#include "tenon/session.h"

namespace tenon::tools {

// A value for reading: type, shape, all elements when few, else the first ones with minimum, maximum and mean.
std::string value_text(const Value& value);

// Every element as text.
std::vector<std::string> elements_as_text(const Tensor& tensor);

// Writes each value into `folder` (made if needed) as NAME.npy; items of a sequence as NAME.0.npy, NAME.1.npy, ….
// Returns the files.
std::vector<std::string> write_values(const std::string& folder, const NamedValues& values);

}  // namespace tenon::tools
