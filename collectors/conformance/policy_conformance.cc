// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/conformance/policy_conformance.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "gmock/gmock.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

// The root and leaves for what the policy writes beside the action.
TensorDict StepWithoutAction(const PolicySubject& subject) {
  TensorDict step = subject.root;
  for (const auto& leaf : subject.policy->output_spec().leaves()) {
    auto zeros = leaf.spec.Zero(subject.root.batch_shape());
    RILL_EXPECT_OK(zeros);
    RILL_EXPECT_OK(step.Set(leaf.key, *std::move(zeros)));
  }
  return step;
}

// The actions of `context`, written over bytes of `fill`.
Tensor ActionsOver(uint8_t fill, const PolicySubject& subject,
                   const ActContext& context = {}) {
  auto action =
      Tensor::Empty(subject.action.dtype,
                    subject.root.batch_shape().Concat(subject.action.shape));
  RILL_EXPECT_OK(action);
  std::memset(action->raw_data(), fill, action->size_bytes());
  const std::byte* const data = action->raw_data();
  TensorDict step = StepWithoutAction(subject);
  RILL_EXPECT_OK(step.Set("action", *std::move(action)));
  RILL_EXPECT_OK(subject.policy->Act(subject.root, context, &step));
  EXPECT_EQ(step.Find("action")->raw_data(), data)
      << "another tensor took its place";
  return *step.Find("action");
}

TEST_P(PolicyConformanceTest, FillsEveryActionInPlaceWithinItsSpec) {
  const PolicySubject subject = GetParam()();
  const PolicySubject again = GetParam()();
  const Tensor zeros = ActionsOver(0, subject);
  EXPECT_THAT(ActionsOver(1, again), BitEqualTo(zeros));
  RILL_EXPECT_OK(
      subject.action.CheckValues("action", subject.root.batch_shape(), zeros));
}

TEST_P(PolicyConformanceTest, LeavesTheRootAlone) {
  const PolicySubject subject = GetParam()();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, subject.root.Clone());
  for (int64_t step = 0; step < 3; ++step) {
    ActionsOver(0, subject, {.frames = 4 * step, .step = step});
  }
  EXPECT_THAT(subject.root, BitEqualTo(before));
}

// A resumed run acts as one that was not interrupted.
TEST_P(PolicyConformanceTest, ActsAgainAsItDidInThisContext) {
  const PolicySubject subject = GetParam()();
  const PolicySubject resumed = GetParam()();
  for (int64_t step = 0; step < 5; ++step) {
    const ActContext context = {.frames = 4 * step, .step = step};
    const Tensor actions = ActionsOver(0, subject, context);
    if (step >= 3) {
      EXPECT_THAT(ActionsOver(0, resumed, context), BitEqualTo(actions));
    }
  }
}

TEST_P(PolicyConformanceTest, ActingChangesNoVersion) {
  const PolicySubject subject = GetParam()();
  TensorDict step = StepWithoutAction(subject);
  RILL_ASSERT_OK(
      step.Set("action", *subject.action.Zero(subject.root.batch_shape())));
  RILL_ASSERT_OK_AND_ASSIGN(const int64_t version,
                            subject.policy->Act(subject.root, {}, &step));
  EXPECT_THAT(subject.policy->Act(subject.root, {}, &step),
              IsOkAndHolds(version));
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PolicyConformanceTest);

}  // namespace rill
