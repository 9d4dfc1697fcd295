// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/status.h"

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "nanobind/nanobind.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/exception.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

constexpr int kNumCodes = 17;

// By absl::StatusCode, borrowed: the module rill.errors keeps them.
PyObject* g_classes[kNumCodes];

PyObject* ClassOf(absl::StatusCode code) {
  const int i = static_cast<int>(code);
  return g_classes[i > 0 && i < kNumCodes ? i : 2];
}

void Translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    if (RaiseCarried(error.status)) return;
    const std::string text(error.status.message());
    PyErr_SetString(ClassOf(error.status.code()), text.c_str());
  }
}

}  // namespace

void BindStatus(nb::module_& /*module*/) {
  const nb::object classes =
      nb::module_::import_("rill.errors").attr("BY_CODE");
  for (int i = 1; i < kNumCodes; ++i) {
    g_classes[i] = nb::object(classes[nb::int_(i)]).release().ptr();
  }
  nb::register_exception_translator(&Translate);
}

}  // namespace rill::python
