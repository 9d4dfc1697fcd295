// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_STATUS_MATCHERS_H_
#define RILL_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// GoogleMock matchers for absl::Status and absl::StatusOr<T>. A mismatch shows
// the whole status. They live in rill:: (an inner namespace "testing" would
// hide GoogleTest's own).
//
//   EXPECT_THAT(storage.Write(batch), IsOk());
//   EXPECT_THAT(manifest.Int("step"), IsOkAndHolds(Eq(3)));
//   EXPECT_THAT(dict.Get("b"), StatusIs(absl::StatusCode::kNotFound));
//   EXPECT_THAT(dict.Get("b"), StatusIs(absl::StatusCode::kNotFound,
//                                       HasSubstr("observation")));
//   RILL_ASSERT_OK_AND_ASSIGN(Tensor t, dict.Get("observation"));
//   RILL_EXPECT_OK(storage.Sync());

#define RILL_EXPECT_OK(expr) EXPECT_THAT((expr), ::rill::IsOk())
#define RILL_ASSERT_OK(expr) ASSERT_THAT((expr), ::rill::IsOk())

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
namespace testing_internal {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

// Explains a mismatch with the whole status, where GoogleTest does not show it
// with the value.
template <typename T>
void Explain(const T& value, ::testing::MatchResultListener* listener) {
  if (!listener->IsInterested()) return;
  const std::string status = StatusOf(value).ToString();
  const std::string shown = ::testing::PrintToString(value);
  if (shown.find(status) != std::string::npos) return;
  *listener << "which has status " << status;
}

class IsOkMatcher {
 public:
  using is_gtest_matcher = void;
  template <typename T>
  bool MatchAndExplain(const T& value,
                       ::testing::MatchResultListener* listener) const {
    Explain(value, listener);
    return value.ok();
  }
  void DescribeTo(std::ostream* os) const { *os << "is OK"; }
  void DescribeNegationTo(std::ostream* os) const { *os << "is not OK"; }
};

class StatusIsMatcher {
 public:
  using is_gtest_matcher = void;
  StatusIsMatcher(::testing::Matcher<absl::StatusCode> code,
                  ::testing::Matcher<const std::string&> message)
      : code_(std::move(code)), message_(std::move(message)) {}

  template <typename T>
  bool MatchAndExplain(const T& value,
                       ::testing::MatchResultListener* listener) const {
    Explain(value, listener);
    const absl::Status& status = StatusOf(value);
    return code_.Matches(status.code()) &&
           message_.Matches(std::string(status.message()));
  }
  void DescribeTo(std::ostream* os) const {
    *os << "has a status code that ";
    code_.DescribeTo(os);
    *os << " and a message that ";
    message_.DescribeTo(os);
  }
  void DescribeNegationTo(std::ostream* os) const {
    *os << "not (";
    DescribeTo(os);
    *os << ")";
  }

 private:
  ::testing::Matcher<absl::StatusCode> code_;
  ::testing::Matcher<const std::string&> message_;
};

template <typename StatusOrType>
class IsOkAndHoldsImpl : public ::testing::MatcherInterface<StatusOrType> {
 public:
  using Value = typename std::decay_t<StatusOrType>::value_type;
  template <typename Inner>
  explicit IsOkAndHoldsImpl(const Inner& inner)
      : inner_(::testing::SafeMatcherCast<const Value&>(inner)) {}

  bool MatchAndExplain(
      StatusOrType value,
      ::testing::MatchResultListener* listener) const override {
    if (!value.ok()) {
      Explain(value, listener);
      return false;
    }
    return inner_.MatchAndExplain(*value, listener);
  }
  void DescribeTo(std::ostream* os) const override {
    *os << "is OK and holds a value that ";
    inner_.DescribeTo(os);
  }
  void DescribeNegationTo(std::ostream* os) const override {
    *os << "is not OK or holds a value that ";
    inner_.DescribeNegationTo(os);
  }

 private:
  ::testing::Matcher<const Value&> inner_;
};

template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}
  template <typename StatusOrType>
  operator ::testing::Matcher<StatusOrType>() const {  // NOLINT: by design
    return ::testing::Matcher<StatusOrType>(
        new IsOkAndHoldsImpl<const std::decay_t<StatusOrType>&>(inner_));
  }

 private:
  Inner inner_;
};

}  // namespace testing_internal

// The status, or the StatusOr's, is OK.
inline testing_internal::IsOkMatcher IsOk() { return {}; }

// The code matches `code`, and the message `message`.
template <typename Code, typename Message>
testing_internal::StatusIsMatcher StatusIs(Code code, Message message) {
  return testing_internal::StatusIsMatcher(
      ::testing::SafeMatcherCast<absl::StatusCode>(std::move(code)),
      ::testing::SafeMatcherCast<const std::string&>(std::move(message)));
}
template <typename Code>
testing_internal::StatusIsMatcher StatusIs(Code code) {
  return StatusIs(std::move(code), ::testing::_);
}

// The StatusOr is OK and its value matches `inner` (a matcher or a value).
template <typename Inner>
testing_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>> IsOkAndHolds(
    Inner&& inner) {
  return testing_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>>(
      std::forward<Inner>(inner));
}

}  // namespace rill

#endif  // RILL_TESTING_STATUS_MATCHERS_H_
