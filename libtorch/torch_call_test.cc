// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_call.h"

#include <stdexcept>

#include "ATen/Functions.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "c10/util/Exception.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The status of a call in which torch raises an error of this kind.
template <typename Error>
absl::Status Raised() {
  return CallTorch(
      []() -> absl::Status {
        throw Error({__func__, __FILE__, __LINE__}, "no");
      },
      "Forward");
}

TEST(TorchCallTest, AWrongShapeIsAStatusWithTorchsTextAndNoBacktrace) {
  const auto result = CallTorch(
      []() -> absl::StatusOr<at::Tensor> {
        return at::ones({2, 3}).mm(at::ones({4, 5}));
      },
      "Forward of ", 7);
  EXPECT_THAT(
      result,
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("Forward of 7: torch: mm: mat1 and mat2"),
                     Not(HasSubstr("frame #")))));
}

TEST(TorchCallTest, KindsOfErrorsHaveTheirCodes) {
  EXPECT_THAT(Raised<c10::Error>(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("Forward: torch: no"),
                             Not(HasSubstr("torch_call_test")))));
  EXPECT_THAT(Raised<c10::ValueError>(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Raised<c10::OutOfMemoryError>(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Raised<c10::NotImplementedError>(),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(Raised<c10::IndexError>(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(TorchCallTest, OtherExceptionsAreThoseOfCatchExceptions) {
  EXPECT_THAT(CallTorch([]() -> absl::Status { throw std::runtime_error("x"); },
                        "Forward"),
              StatusIs(absl::StatusCode::kInternal,
                       "Forward: threw std::runtime_error: x"));
}

TEST(TorchCallTest, AResultComesBack) {
  EXPECT_THAT(CallTorch([]() -> absl::StatusOr<int> { return 3; }, "Three"),
              IsOkAndHolds(3));
}

}  // namespace
}  // namespace rill
