// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/exception.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/release.h"
#include "rill/python/bindings/status.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// A payload of this name holds the address of the exception, which it owns.
constexpr absl::string_view kPayload = "rill/python_exception";

// Owned by the Cord, and by its copies. Null once it was raised: its traceback
// holds all that the callers hold, which must not go with the status.
struct Carried {
  PyObject* exception;
  bool is_interrupt;
};

// Null where a status carries none.
Carried* CarriedBy(const absl::Status& status) {
  const std::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return nullptr;
  const std::optional<absl::string_view> bytes = payload->TryFlat();
  if (!bytes.has_value() || bytes->size() != sizeof(Carried)) return nullptr;
  return reinterpret_cast<Carried*>(const_cast<char*>(bytes->data()));
}

// How many calls of CallPython this thread is in.
thread_local int g_calls = 0;
// Whether the outermost of them has no state of the interpreter's but its own.
thread_local bool g_is_buffers = false;

thread_local absl::Status g_noted;

void Drop(Carried* carried) {
  ReleaseLater(carried->exception);
  delete carried;
}

// Its __str__ may raise itself.
std::string TextOf(nb::handle exception) {
  try {
    return nb::str(exception).c_str();
  } catch (const nb::python_error&) {
    return "it has no text";
  }
}

absl::Status StatusOf(absl::string_view who, const nb::python_error& error) {
  const nb::handle exception = error.value();
  absl::Status status = absl::InternalError(
      absl::StrCat(who, ": ", nb::str(error.type().attr("__name__")).c_str(),
                   ": ", TextOf(exception)));
  const bool is_interrupt = !error.matches(PyExc_Exception);
  auto* carried =
      new Carried{nb::borrow(exception).release().ptr(), is_interrupt};
  status.SetPayload(
      kPayload, absl::MakeCordFromExternal(
                    absl::string_view(reinterpret_cast<const char*>(carried),
                                      sizeof(Carried)),
                    [carried] { Drop(carried); }));
  return status;
}

}  // namespace

absl::Status CallPython(absl::string_view who, absl::FunctionRef<void()> call) {
  if (Py_IsInitialized() == 0) {
    return absl::CancelledError(
        absl::StrCat(who, ": the interpreter has ended"));
  }
  if (g_calls == 0) {
    g_is_buffers = PyGILState_GetThisThreadState() == nullptr;
  }
  const Locked lock;
  ++g_calls;
  const absl::Cleanup end = [] { --g_calls; };
  try {
    call();
  } catch (const nb::python_error& error) {
    return StatusOf(who, error);
  } catch (const StatusError& error) {
    return error.status;
  }
  return absl::OkStatus();
}

void NoteFailure(absl::Status status) { g_noted = std::move(status); }

absl::Status TakeNoted(absl::Status status) {
  if (g_noted.ok()) return status;
  absl::Status noted = std::exchange(g_noted, absl::OkStatus());
  return status.ok() ? status : noted;
}

bool IsInCallPython() { return g_calls != 0; }

bool IsInThreadOfBuffer() { return g_calls != 0 && g_is_buffers; }

bool CarriesInterrupt(const absl::Status& status) {
  const Carried* const carried = CarriedBy(status);
  return carried != nullptr && carried->is_interrupt;
}

bool RaiseCarried(const absl::Status& status) {
  Carried* const carried = CarriedBy(status);
  if (carried == nullptr || carried->exception == nullptr) return false;
  const nb::object exception =
      nb::steal(std::exchange(carried->exception, nullptr));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())),
                  exception.ptr());
  return true;
}

}  // namespace rill::python
