// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/policy_critic.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The value is the observation plus the memory; it explores, if it is asked to.
class AddingPolicy final : public Policy {
 public:
  explicit AddingPolicy(DType dtype = DType::kFloat32) {
    RILL_EXPECT_OK(spec_.Set("state_value", LeafSpec::Unbounded(dtype, {1})));
    RILL_EXPECT_OK(
        spec_.Set("next/memory", LeafSpec::Unbounded(DType::kFloat32, {1})));
  }
  const TensorDictSpec& output_spec() const override { return spec_; }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    if (context.explore) return absl::InternalError("asked to explore");
    RILL_ASSIGN_OR_RETURN(const auto observation,
                          root.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(const auto memory, root.Flat<float>("memory"));
    RILL_ASSIGN_OR_RETURN(const auto value, step->Flat<float>("state_value"));
    RILL_ASSIGN_OR_RETURN(const auto next, step->Flat<float>("next/memory"));
    RILL_RETURN_IF_ERROR(step->Flat<int64_t>("action").status());
    for (size_t i = 0; i < value.size(); ++i) {
      value[i] = observation[i] + memory[i];
      next[i] = -1;
    }
    return 0;
  }

 private:
  TensorDictSpec spec_;
};

TensorDictSpec ActionSpec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(spec.Set("action", LeafSpec::Categorical(2)));
  return spec;
}

TensorDict States() {
  return *TensorDict::Create(
      {3}, {{"observation", *Tensor::From<float>({1, 2, 3}, {3, 1})},
            {"memory", *Tensor::From<float>({10, 20, 30}, {3, 1})}});
}

TEST(PolicyCriticTest, Example) {
  AddingPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const auto critic,
                            MakePolicyCritic(&policy, ActionSpec()));
  const TensorDict states = States();
  RILL_ASSERT_OK_AND_ASSIGN(Tensor values,
                            Tensor::Zeros(DType::kFloat32, {3, 1}));
  RILL_ASSERT_OK(critic(states, &values));
  EXPECT_THAT(values.Flat<float>(), IsOkAndHolds(ElementsAre(11, 22, 33)));
  // The recurrent state of the states is read, and none is written to them.
  EXPECT_THAT(states.Flat<float>("memory"),
              IsOkAndHolds(ElementsAre(10, 20, 30)));
  EXPECT_EQ(states.Find("next/memory"), nullptr);
}

// Values of a group of two agents: their states' numbers.
class TeamPolicy final : public Policy {
 public:
  TeamPolicy() {
    RILL_EXPECT_OK(
        spec_.Set("team/value", LeafSpec::Unbounded(DType::kFloat32, {2, 1})));
  }
  const TensorDictSpec& output_spec() const override { return spec_; }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext&,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const Tensor seen, root.Get("team/observation"));
    RILL_RETURN_IF_ERROR(step->Find("team/value")->CopyFrom(seen));
    return 0;
  }

 private:
  TensorDictSpec spec_;
};

TEST(PolicyCriticTest, AGroupHasAValueForEachAgent) {
  TeamPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto critic, MakePolicyCritic(&policy, ActionSpec(), "team/value"));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict states,
      TensorDict::Create({2},
                         {{"team/observation",
                           *Tensor::From<float>({1, 2, 3, 4}, {2, 2, 1})}}));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor values,
                            Tensor::Zeros(DType::kFloat32, {2, 2, 1}));
  RILL_ASSERT_OK(critic(states, &values));
  EXPECT_THAT(values.Flat<float>(), IsOkAndHolds(ElementsAre(1, 2, 3, 4)));
}

TEST(PolicyCriticTest, RefusesAnOutputThatIsNoValue) {
  AddingPolicy policy, flags(DType::kBool);
  EXPECT_THAT(MakePolicyCritic(nullptr, ActionSpec()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakePolicyCritic(&policy, ActionSpec(), "values"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("none of the policy's outputs")));
  EXPECT_THAT(
      MakePolicyCritic(&flags, ActionSpec()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bool[1]")));
}

TEST(PolicyCriticTest, ErrorsOfThePolicyAndOtherDTypesComeBack) {
  AddingPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const auto critic,
                            MakePolicyCritic(&policy, ActionSpec()));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor values,
                            Tensor::Zeros(DType::kFloat64, {3, 1}));
  EXPECT_THAT(critic(States(), &values),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want float64[3, 1]")));
  EXPECT_THAT(critic(TensorDict({3}), &values),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("observation")));
}

}  // namespace
}  // namespace rill
