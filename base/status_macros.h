// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_STATUS_MACROS_H_
#define RILL_BASE_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Returns early with the status of `expr` if it is not OK. Context goes after
// the macro and ends up behind the callee's text:
//   RILL_RETURN_IF_ERROR(Load(path)) << "while restoring the sampler";
// A lambda that uses these macros names its result: [] -> absl::Status {...}.
#define RILL_RETURN_IF_ERROR(expr)                                      \
  if (::rill::base_internal::StatusBuilder rill_status_builder((expr)); \
      rill_status_builder.ok()) {                                       \
  } else /* NOLINT */                                                   \
    return rill_status_builder

// Moves the value of a StatusOr into `lhs` (a declaration or an lvalue), or
// returns early with its status:
//   RILL_ASSIGN_OR_RETURN(Tensor t, dict.Get("observation"));
// It is several statements, so behind `if`, `else` or `for` it wants braces;
// without them the compiler misses a name, 'rill_status_or_...'.
#define RILL_ASSIGN_OR_RETURN(lhs, expr) \
  RILL_STATUS_MACROS_ASSIGN_(            \
      RILL_STATUS_MACROS_CONCAT_(rill_status_or_, __LINE__), lhs, expr)

#define RILL_STATUS_MACROS_ASSIGN_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return std::move(tmp).status();   \
  lhs = *std::move(tmp)
#define RILL_STATUS_MACROS_CONCAT_INNER_(a, b) a##b
#define RILL_STATUS_MACROS_CONCAT_(a, b) RILL_STATUS_MACROS_CONCAT_INNER_(a, b)

namespace rill {

// Errors by kind, with the parts joined as absl::StrCat does:
//   return InvalidArgument("lanes: got ", lanes, ", want >= 1");
template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status FailedPrecondition(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status DataLoss(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status OutOfRange(const Parts&... parts) {
  return absl::OutOfRangeError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status NotFound(const Parts&... parts) {
  return absl::NotFoundError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status ResourceExhausted(const Parts&... parts) {
  return absl::ResourceExhaustedError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status Unavailable(const Parts&... parts) {
  return absl::UnavailableError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status Internal(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

namespace base_internal {

// Carries a status to the `return` of the macro and appends context to it.
// Converts to Status, and through it to any StatusOr. Thread-compatible.
class StatusBuilder {
 public:
  explicit StatusBuilder(absl::Status status) : status_(std::move(status)) {}

  bool ok() const { return status_.ok(); }

  template <typename T>
  StatusBuilder& operator<<(const T& text) {
    Append(absl::StrCat(text));
    return *this;
  }

  operator absl::Status() const { return status_; }  // NOLINT: by design

 private:
  void Append(absl::string_view text) {
    if (status_.ok()) return;
    absl::Status longer(
        status_.code(),
        absl::StrCat(status_.message(), has_context_ ? "" : "; ", text));
    status_.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) {
          longer.SetPayload(url, payload);
        });
    status_ = std::move(longer);
    has_context_ = true;
  }

  absl::Status status_;
  bool has_context_ = false;
};

}  // namespace base_internal
}  // namespace rill

#endif  // RILL_BASE_STATUS_MACROS_H_
