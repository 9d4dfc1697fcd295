// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_OPTIONS_H_
#define RILL_PYTHON_BINDINGS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/status.h"
#include "rill/tensors/dtype.h"

namespace rill::python {

// The options of a part, from a dictionary. One that is not there, or None,
// leaves the default. The lock is held.
class OptionReader {
 public:
  // `part` begins the messages.
  OptionReader(absl::string_view part, nanobind::dict options)
      : part_(part), options_(std::move(options)) {}

  // It takes options out of a copy.
  static OptionReader OfCopy(absl::string_view part,
                             const nanobind::dict& options) {
    return {part, nanobind::borrow<nanobind::dict>(options.attr("copy")())};
  }

  // Throws INVALID_ARGUMENT where it is of another type.
  template <typename T>
  OptionReader& Read(const char* name, T* option) {
    const nanobind::object given = Take(name);
    if (given.is_valid() && !nanobind::try_cast<T>(given, *option)) {
      Refuse(name, given, "a value of its type");
    }
    return *this;
  }
  OptionReader& Read(const char* name, DType* option);
  // One of `values`, by its place among `names`.
  template <typename T>
  OptionReader& ReadEnum(const char* name, T* option,
                         const std::vector<const char*>& names,
                         const std::vector<T>& values) {
    const nanobind::object given = Take(name);
    if (!given.is_valid()) return *this;
    std::string text;
    if (nanobind::try_cast<std::string>(given, text)) {
      for (size_t i = 0; i < names.size(); ++i) {
        if (text != names[i]) continue;
        *option = values[i];
        return *this;
      }
    }
    Refuse(name, given, names);
  }

  // Throws INVALID_ARGUMENT where one was given that nobody has read.
  void CheckAllRead() const;

 private:
  // Invalid where it is not there.
  nanobind::object Take(const char* name);
  [[noreturn]] void Refuse(absl::string_view name, nanobind::handle given,
                           absl::string_view want) const;
  [[noreturn]] void Refuse(absl::string_view name, nanobind::handle given,
                           const std::vector<const char*>& names) const;

  const std::string part_;
  nanobind::dict options_;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_OPTIONS_H_
