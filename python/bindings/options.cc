// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/options.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/status.h"
#include "rill/tensors/dtype.h"

namespace rill::python {

namespace nb = nanobind;

nb::object OptionReader::Take(const char* name) {
  if (!options_.contains(name)) return {};
  nb::object given = options_[name];
  nb::del(options_[name]);
  if (given.is_none()) return {};
  return given;
}

OptionReader& OptionReader::Read(const char* name, DType* option) {
  const nb::object given = Take(name);
  if (!given.is_valid()) return *this;
  // "float32", numpy.float32, numpy.dtype("float32") and torch.float32.
  std::string text = nb::str(given).c_str();
  if (PyObject_HasAttrString(given.ptr(), "__name__") != 0) {
    text = nb::str(given.attr("__name__")).c_str();
  }
  if (const size_t dot = text.rfind('.'); dot != std::string::npos) {
    text.erase(0, dot + 1);
  }
  const absl::StatusOr<DType> dtype = DTypeFromName(text);
  if (!dtype.ok()) Refuse(name, given, "a dtype as float32");
  *option = *dtype;
  return *this;
}

void OptionReader::Refuse(absl::string_view name, nb::handle given,
                          absl::string_view want) const {
  throw StatusError{InvalidArgument(part_, ": ", name, ": got ",
                                    nb::repr(given).c_str(), ", want ", want)};
}

void OptionReader::Refuse(absl::string_view name, nb::handle given,
                          const std::vector<const char*>& names) const {
  Refuse(name, given, absl::StrCat("one of ", absl::StrJoin(names, ", ")));
}

void OptionReader::CheckAllRead() const {
  for (const auto& [name, value] : options_) {
    throw StatusError{InvalidArgument(part_, ": got an option \"",
                                      nb::str(name).c_str(),
                                      "\", want none of that name")};
  }
}

}  // namespace rill::python
