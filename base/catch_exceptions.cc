// SPDX-License-Identifier: Apache-2.0
#include "rill/base/catch_exceptions.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <typeinfo>

#include "rill/base/status_macros.h"

namespace rill::base_internal {
namespace {

// "std::runtime_error", of the exception at hand.
std::string TypeName() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "an exception of another language";
  int error = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &error), std::free);
  return name == nullptr ? type->name() : name.get();
}

absl::Status Describe(absl::FunctionRef<std::string()> who) {
  try {
    abi::__cxa_rethrow();
  } catch (const abi::__forced_unwind&) {
    abi::__cxa_rethrow();  // The thread is cancelled.
  } catch (const std::bad_alloc& error) {
    return ResourceExhausted(who(), ": threw ", TypeName(), ": ", error.what());
  } catch (const std::exception& error) {
    return Internal(who(), ": threw ", TypeName(), ": ", error.what());
  } catch (...) {
    return Internal(who(), ": threw ", TypeName());
  }
}

}  // namespace

absl::Status StatusOfException(absl::FunctionRef<std::string()> who) {
  try {
    return Describe(who);
  } catch (const std::bad_alloc&) {
    // There is no memory for the text either, and this takes none.
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace rill::base_internal
