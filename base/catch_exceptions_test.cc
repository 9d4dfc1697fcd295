// SPDX-License-Identifier: Apache-2.0
#include "rill/base/catch_exceptions.h"

#include <pthread.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::StartsWith;

struct Mine final : std::logic_error {
  using std::logic_error::logic_error;
};

TEST(CatchExceptionsTest, WhatIsReturnedComesBack) {
  RILL_EXPECT_OK(CatchExceptions([] { return absl::OkStatus(); }, "f"));
  EXPECT_THAT(CatchExceptions([] { return absl::NotFoundError("no"); }, "f"),
              StatusIs(absl::StatusCode::kNotFound, "no"));
  const absl::StatusOr<int> four =
      CatchExceptions([]() -> absl::StatusOr<int> { return 4; }, "f");
  EXPECT_EQ(four.value(), 4);
}

TEST(CatchExceptionsTest, TheTextSaysWhoThrewWhat) {
  EXPECT_THAT(
      CatchExceptions([]() -> absl::Status { throw Mine("no layer 3"); },
                      "Env ", std::string("a"), 7, "::Step"),
      StatusIs(absl::StatusCode::kInternal,
               "Env a7::Step: threw rill::(anonymous namespace)::Mine: "
               "no layer 3"));
  const absl::StatusOr<int> none = CatchExceptions(
      []() -> absl::StatusOr<int> { throw std::runtime_error("x"); }, "f");
  EXPECT_THAT(none, StatusIs(absl::StatusCode::kInternal,
                             "f: threw std::runtime_error: x"));
}

TEST(CatchExceptionsTest, WhatIsNoStdExceptionIsCaughtToo) {
  EXPECT_THAT(CatchExceptions([]() -> absl::Status { throw 7; }, "f"),
              StatusIs(absl::StatusCode::kInternal, "f: threw int"));
}

TEST(CatchExceptionsTest, MemoryThatIsNotThereIsResourceExhausted) {
  EXPECT_THAT(
      CatchExceptions([]() -> absl::Status { throw std::bad_alloc(); }, "f"),
      StatusIs(absl::StatusCode::kResourceExhausted,
               StartsWith("f: threw std::bad_alloc")));
}

struct NoText {
  operator absl::AlphaNum() const { throw std::bad_alloc(); }  // NOLINT
};

TEST(CatchExceptionsTest, ATextForWhichThereIsNoMemoryIsLeftOut) {
  EXPECT_THAT(CatchExceptions([]() -> absl::Status { throw 7; }, NoText()),
              StatusIs(absl::StatusCode::kResourceExhausted, ""));
}

void* WaitForCancel(void* /*argument*/) {
  CatchExceptions(
      []() -> absl::Status {
        for (;;) pause();
      },
      "f")
      .IgnoreError();
  return nullptr;
}

TEST(CatchExceptionsTest, ACancelledThreadEnds) {
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, WaitForCancel, nullptr), 0);
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

}  // namespace
}  // namespace rill
