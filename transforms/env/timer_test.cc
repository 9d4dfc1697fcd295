// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/timer.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeClock final : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::FromUnixSeconds(1000);
};

// Its calls are 1 s after one another in an environment, which takes no time.
class TickingClock final : public Clock {
 public:
  absl::Time Now() const override { return now += absl::Seconds(1); }

 private:
  mutable absl::Time now = absl::FromUnixSeconds(1000);
};

TEST(TimerTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto timer, Timer::Create({.time_key = "seconds"}));
  EXPECT_EQ(timer->name(), "Timer");
}

TEST(TimerTest, TimesStepsPoliciesAndResets) {
  FakeClock clock;
  RILL_ASSERT_OK_AND_ASSIGN(auto timer, Timer::Create({.clock = &clock}));
  const TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan, timer->PlanSteps(spec));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, plan.spec.Zero({2}));
  RILL_ASSERT_OK_AND_ASSIGN(BoundRows rows,
                            BoundRows::Create("TimerTest", plan.leaves));
  RILL_ASSERT_OK(rows.Bind(&step));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, timer->InitialState(2));

  RILL_ASSERT_OK(timer->OnReset({1, 1}, rows.leaves(), &state));
  EXPECT_THAT(step.Flat<float>("time_reset"), IsOkAndHolds(ElementsAre(0, 0)));
  clock.now += absl::Seconds(2);
  RILL_ASSERT_OK(timer->OnAction(rows.leaves(), &state));
  clock.now += absl::Milliseconds(500);
  RILL_ASSERT_OK(timer->OnStep(rows.leaves(), &state));
  EXPECT_THAT(step.Flat<float>("next/time_policy"),
              IsOkAndHolds(ElementsAre(2, 2)));
  EXPECT_THAT(step.Flat<float>("next/time_step"),
              IsOkAndHolds(ElementsAre(0.5f, 0.5f)));
  EXPECT_THAT(step.Flat<float>("next/time_reset"),
              IsOkAndHolds(ElementsAre(0, 0)));
  clock.now += absl::Seconds(3);
  for (const char* key : {"time_step", "time_policy"}) {
    std::fill_n(step.Find(key)->data<float>(), 2, 9.0f);
  }
  RILL_ASSERT_OK(timer->OnReset({0, 1}, rows.leaves(), &state));
  EXPECT_THAT(step.Flat<float>("time_reset"), IsOkAndHolds(ElementsAre(0, 3)));

  for (const char* key : {"time_step", "time_policy"}) {
    EXPECT_THAT(step.Flat<float>(key), IsOkAndHolds(ElementsAre(9, 0))) << key;
  }

  clock.now -= absl::Seconds(100);
  RILL_ASSERT_OK(timer->OnAction(rows.leaves(), &state));
  RILL_ASSERT_OK(timer->OnStep(rows.leaves(), &state));
  EXPECT_THAT(step.Flat<float>("next/time_policy"),
              IsOkAndHolds(ElementsAre(0, 0)));
}

TEST(TimerTest, BadOptionsAndTakenKeysAreNamed) {
  EXPECT_THAT(Timer::Create({.clock = nullptr}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("clock")));
  EXPECT_THAT(
      Timer::Create({.time_key = ""}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("time_key")));
  RILL_ASSERT_OK_AND_ASSIGN(auto timer, Timer::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan, timer->PlanSteps(TedSpec()));
  EXPECT_THAT(
      timer->PlanSteps(plan.spec).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"time_step\"")));
}

// A clock of its own for each timer, so that equal ones give equal steps.
std::unique_ptr<StepTransform> MakeTimer() {
  static std::vector<std::unique_ptr<TickingClock>> clocks;
  clocks.push_back(std::make_unique<TickingClock>());
  return *Timer::Create({.clock = clocks.back().get()});
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(Timer, {.make = MakeTimer,
                                               .step_spec = TedSpec(),
                                               .reads_clock = true});

}  // namespace rill
