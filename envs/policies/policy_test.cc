// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/policy.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorDict StepWithActions() {
  TensorDict step({2});
  RILL_EXPECT_OK(step.Set("action", *Tensor::From<int64_t>({7, 7}, {2})));
  return step;
}

TEST(PolicyTest, Example) {
  FunctionPolicy left([](const TensorDict& /*root*/, Tensor* action) {
    std::fill_n(action->data<int64_t>(), action->num_elements(), 0);
    return absl::OkStatus();
  });
  TensorDict step = StepWithActions();
  EXPECT_THAT(left.Act({}, {}, &step), IsOkAndHolds(0));
  EXPECT_THAT(step.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(0, 0)));
  EXPECT_TRUE(left.output_spec().empty());
}

TEST(PolicyTest, AFunctionMayAskForTheContextAndHasAVersion) {
  FunctionPolicy policy(
      [](const TensorDict&, const ActContext& context, Tensor* action) {
        action->data<int64_t>()[1] = context.frames + context.step;
        return absl::OkStatus();
      },
      /*version=*/3);
  TensorDict step = StepWithActions();
  EXPECT_THAT(policy.Act({}, {.frames = 20, .step = 1}, &step),
              IsOkAndHolds(3));
  EXPECT_THAT(step.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(7, 21)));
}

TEST(PolicyTest, AFunctionThatReplacesTheActionIsRefused) {
  FunctionPolicy policy([](const TensorDict&, Tensor* action) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(*action, action->Clone());
    return absl::OkStatus();
  });
  TensorDict step = StepWithActions();
  EXPECT_THAT(policy.Act({}, {}, &step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("filled in place")));
}

TEST(PolicyTest, AStepWithoutTheLeafActionIsRefused) {
  FunctionPolicy policy(
      [](const TensorDict&, Tensor*) { return absl::OkStatus(); });
  TensorDict step({2});
  EXPECT_THAT(policy.Act({}, {}, &step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"action\" is missing")));
}

}  // namespace
}  // namespace rill
