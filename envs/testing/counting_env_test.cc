// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/testing/counting_env.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Stay(const TensorDict&, Tensor*) { return absl::OkStatus(); }

TEST(CountingEnvTest, CountsItsSteps) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(Stay),
              {.max_steps = 4, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 1, 2, 0)));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(1, 2, 1, 2, 1, 2, 3, 1)));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 0, 1, 0)));
}

TEST(CountingEnvTest, EndsTruncatedWhenAsked) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeCountingEnv({.episode_steps = 2, .ends_truncated = true}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(Stay),
              {.max_steps = 2, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(false, false)));
  EXPECT_THAT(batch.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, true)));
  EXPECT_THAT(batch.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true)));
}

TEST(CountingEnvTest, RefusesOptionsOutOfRange) {
  EXPECT_THAT(
      MakeCountingEnv({.lanes = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 0, 3, 0")));
}

INSTANTIATE_TEST_SUITE_P(
    Counting, EnvConformanceTest,
    ::testing::Values(
        [] { return MakeCountingEnv({.lanes = 3, .stagger_steps = 2}); },
        [] { return MakeCountingEnv({.lanes = 2, .ends_truncated = true}); },
        [] { return MakeCountingEnv({.can_save = false}); }));

// --- Environments that break a promise ---------------------------------------

// A CountingEnv, changed.
class WrongEnv : public envs_internal::EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;

 protected:
  float* Floats(const char* key) { return step().Find(key)->data<float>(); }
};

struct MakesNan final : WrongEnv {
  using WrongEnv::WrongEnv;
  absl::Status BeginStep() override {
    const absl::Status status = WrongEnv::BeginStep();
    Floats("next/observation")[1] = std::nanf("");
    return status;
  }
};
struct StepsBeforeAnyReset final : WrongEnv {
  using WrongEnv::WrongEnv;
  absl::Status BeginStep() override {
    const absl::Status status = WrongEnv::BeginStep();
    return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
  }
};
// Draws from what is of the process and not of the seed.
struct DrawsFromItsNumber final : WrongEnv {
  using WrongEnv::WrongEnv;
  absl::Status BeginStep() override {
    const absl::Status status = WrongEnv::BeginStep();
    Floats("next/reward")[0] += static_cast<float>(number);
    return status;
  }
  static inline int made = 0;
  const int number = ++made;
};
// Gives back what it was given, and goes on as before.
struct KeepsALoadedStateUnused final : WrongEnv {
  using WrongEnv::WrongEnv;
  absl::StatusOr<TensorDict> SaveState() const override {
    return loaded.empty() ? WrongEnv::SaveState() : loaded;
  }
  absl::Status LoadState(const TensorDict& state) override {
    RILL_RETURN_IF_ERROR(state.GetOr("steps", Tensor()).status());
    loaded = state;
    return absl::OkStatus();
  }
  TensorDict loaded;
};
// Its own state goes on; the rows that a policy sees do not.
struct ResetWritesAllRows final : WrongEnv {
  using WrongEnv::WrongEnv;
  absl::Status Reset(const ResetMask& mask) override {
    const absl::Status status = WrongEnv::Reset(mask);
    std::fill_n(Floats("observation"), lanes(), 0.0f);
    return status;
  }
};

template <typename T>
absl::StatusOr<std::unique_ptr<Env>> Make() {
  RILL_ASSIGN_OR_RETURN(
      auto env,
      MakeCountingEnv({.lanes = 3, .episode_steps = 2, .stagger_steps = 1}));
  return std::make_unique<T>(std::move(env));
}

std::vector<WrongPart<EnvConformanceTest>> WrongEnvs() {
  return {{.name = "MakesNan",
           .test = "KeepsThePromisesOfEnv",
           .says = "values are numbers",
           .part = Make<MakesNan>},
          {.name = "StepsBeforeAnyReset",
           .test = "FreshEnvRefusesStepsBeforeReset",
           .says = "Actual: OK",
           .part = Make<StepsBeforeAnyReset>},
          {.name = "DrawsFromItsNumber",
           .test = "TwoEnvsOfOneSeedAreEqual",
           .says = "\"next/reward\"",
           .part = Make<DrawsFromItsNumber>},
          {.name = "KeepsALoadedStateUnused",
           .test = "AnotherEnvGoesOnFromASavedState",
           .says = "step 0",
           .part = Make<KeepsALoadedStateUnused>},
          {.name = "ResetWritesAllRows",
           .test = "RolloutKeepsTheFinalObservationInNext",
           .says = "lane 1, time 1",
           .part = Make<ResetWritesAllRows>}};
}
RILL_REFUSES_WRONG_PARTS(EnvConformanceTest, WrongEnvs);

}  // namespace
}  // namespace rill
