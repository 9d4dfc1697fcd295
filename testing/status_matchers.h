// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_STATUS_MATCHERS_H_
#define RILL_TESTING_STATUS_MATCHERS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Abseil's matchers for absl::Status and absl::StatusOr<T>, by short names, and
// macros around them that show the whole status when they fail.
//
//   EXPECT_THAT(manifest.Int("step"), IsOkAndHolds(Eq(3)));
//   EXPECT_THAT(dict.Get("b"), IsNotFound());
//   EXPECT_THAT(dict.Get("b"), IsNotFound("observation"));  // In the message.
//   EXPECT_THAT(dict.Get("b"), StatusIs(absl::StatusCode::kNotFound,
//                                       StartsWith("TensorDict::Get")));
//   RILL_ASSERT_OK_AND_ASSIGN(Tensor t, dict.Get("observation"));
//   RILL_EXPECT_OK(storage.Sync());

// These allocate nothing where all is well.
#define RILL_EXPECT_OK(expr) \
  EXPECT_PRED_FORMAT1(::rill::testing_internal::SaysOk, expr)
#define RILL_ASSERT_OK(expr) \
  ASSERT_PRED_FORMAT1(::rill::testing_internal::SaysOk, expr)

// Moves the value of a StatusOr into `lhs` (a declaration or an lvalue), or
// fails the test and returns from the function, which must return void.
#define RILL_ASSERT_OK_AND_ASSIGN(lhs, expr)                                   \
  RILL_TESTING_ASSIGN_(RILL_TESTING_CONCAT_(rill_assert_status_or_, __LINE__), \
                       lhs, expr)

#define RILL_TESTING_ASSIGN_(tmp, lhs, expr)                                 \
  auto tmp = (expr);                                                         \
  ASSERT_TRUE(tmp.ok()) << #expr << " returned " << tmp.status().ToString(); \
  lhs = *std::move(tmp)
#define RILL_TESTING_CONCAT_INNER_(a, b) a##b
#define RILL_TESTING_CONCAT_(a, b) RILL_TESTING_CONCAT_INNER_(a, b)

namespace rill {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;

namespace testing_internal {

inline auto HasCode(absl::StatusCode code, absl::string_view text) {
  return StatusIs(code, ::testing::HasSubstr(std::string(text)));
}

inline ::testing::AssertionResult SaysOk(const char* text,
                                         const absl::Status& status) {
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << text << " returned " << status.ToString();
}
template <typename T>
::testing::AssertionResult SaysOk(const char* text,
                                  const absl::StatusOr<T>& value) {
  return SaysOk(text, value.status());
}

}  // namespace testing_internal

// A status of this code whose message has `text` in it; without one, any.
inline auto IsInvalidArgument(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kInvalidArgument, text);
}
inline auto IsFailedPrecondition(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kFailedPrecondition, text);
}
inline auto IsOutOfRange(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kOutOfRange, text);
}
inline auto IsNotFound(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kNotFound, text);
}
inline auto IsDataLoss(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kDataLoss, text);
}
inline auto IsUnavailable(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kUnavailable, text);
}
inline auto IsResourceExhausted(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kResourceExhausted, text);
}
inline auto IsDeadlineExceeded(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kDeadlineExceeded, text);
}
inline auto IsInternal(absl::string_view text = "") {
  return testing_internal::HasCode(absl::StatusCode::kInternal, text);
}

}  // namespace rill

#endif  // RILL_TESTING_STATUS_MATCHERS_H_
