// SPDX-License-Identifier: Apache-2.0
// init_random_frames of a policy with outputs, in an environment with legal
// actions, which fails at any other.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/testing/legal_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/actions/action_mask.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLanes = 2, kTime = 40, kOptions = 4;

// Takes the last legal option and says so with a log-probability of -77. Its
// recurrent state counts the steps of an episode; its value is 10 more.
class LastLegal final : public Policy {
 public:
  explicit LastLegal(
      const LeafSpec& log_prob = LeafSpec::Unbounded(DType::kFloat32, {1})) {
    RILL_EXPECT_OK(spec_.Set("log_prob", log_prob));
    for (const char* key : {"state_value", "next/count"}) {
      RILL_EXPECT_OK(spec_.Set(key, LeafSpec::Unbounded(DType::kFloat32, {1})));
    }
  }
  const TensorDictSpec& output_spec() const override { return spec_; }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext&,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const auto mask, root.Flat<bool>("action_mask"));
    RILL_ASSIGN_OR_RETURN(const auto before, root.Flat<float>("count"));
    RILL_ASSIGN_OR_RETURN(const auto count, step->Flat<float>("next/count"));
    RILL_ASSIGN_OR_RETURN(const auto value, step->Flat<float>("state_value"));
    RILL_ASSIGN_OR_RETURN(const auto log_prob, step->Flat<float>("log_prob"));
    RILL_ASSIGN_OR_RETURN(const auto action, step->Flat<int64_t>("action"));
    for (size_t lane = 0; lane < action.size(); ++lane) {
      action[lane] = kOptions - 1;
      while (!mask[kOptions * lane + action[lane]]) --action[lane];
      count[lane] = before[lane] + 1;
      value[lane] = before[lane] + 10;
      log_prob[lane] = -77;
    }
    return 5;
  }

 private:
  TensorDictSpec spec_;
};

SyncCollector::Options Options(Policy* policy, int64_t random_frames) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeLegalEnv({.lanes = kLanes});
  options.policy = policy;
  options.frames_per_batch = kLanes * kTime;
  options.init_random_frames = random_frames;
  options.seed = 4;
  return options;
}

TEST(RandomFramesTest, ThePolicyActsAndActionAndLogProbabilityAreReplaced) {
  constexpr int64_t kRandom = 30;  // Steps.
  LastLegal policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, SyncCollector::Create(Options(
                                                &policy, kLanes * kRandom)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  const auto mask = *batch.Flat<bool>("action_mask");
  const auto action = *batch.Flat<int64_t>("action");
  const auto log_prob = *batch.Flat<float>("log_prob");
  const auto value = *batch.Flat<float>("state_value");
  const auto root = *batch.Flat<float>("count");
  const auto next = *batch.Flat<float>("next/count");
  const auto steps = *batch.Flat<float>("observation");
  const auto version = *batch.Flat<int64_t>("policy_version");
  int64_t others = 0;
  for (size_t row = 0; row < action.size(); ++row) {
    const bool* const legal = &mask[kOptions * row];
    EXPECT_TRUE(legal[action[row]]);
    // Recurrent state and values go on as if the policy's actions were taken.
    EXPECT_EQ(root[row], steps[row]);
    EXPECT_EQ(next[row], steps[row] + 1);
    EXPECT_EQ(value[row], steps[row] + 10);
    int64_t last = kOptions - 1;
    while (!legal[last]) --last;
    if (row % kTime >= kRandom) {
      EXPECT_EQ(action[row], last);
      EXPECT_EQ(log_prob[row], -77);
      EXPECT_EQ(version[row], 5);
      continue;
    }
    others += action[row] != last ? 1 : 0;
    EXPECT_EQ(version[row], 0);
    EXPECT_FLOAT_EQ(log_prob[row], -std::log(static_cast<float>(std::count(
                                       legal, legal + kOptions, true))));
  }
  EXPECT_GT(others, 10);
}

TEST(RandomFramesTest, WithoutAPolicyTheyAreLegalToo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(Options(nullptr, 0)));
  RILL_EXPECT_OK(collector->Next().status());
  // Beside ActionMask, which declares what the environment does not.
  SyncCollector::Options options = Options(nullptr, 0);
  options.env = *MakeLegalEnv({.lanes = kLanes, .declares = false});
  options.transforms.push_back(*ActionMask::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(collector,
                            SyncCollector::Create(std::move(options)));
  RILL_EXPECT_OK(collector->Next().status());
}

TEST(RandomFramesTest, AStateWithoutLegalActionsNamesLaneAndLeaf) {
  SyncCollector::Options options = Options(nullptr, 0);
  options.env = *MakeLegalEnv({.lanes = kLanes, .none_legal_at = 3});
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  EXPECT_THAT(collector->Next().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("lane 0: \"action_mask\" allows no option of "
                                 "\"action\"")));
}

TEST(RandomFramesTest, ALogProbabilityThatCannotBeOneIsRefused) {
  LastLegal policy(LeafSpec::Unbounded(DType::kFloat32, {3}));
  EXPECT_THAT(SyncCollector::Create(Options(&policy, 8)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"log_prob\": got 3 elements a lane")));
  // Only where it is written.
  RILL_EXPECT_OK(SyncCollector::Create(Options(&policy, 0)).status());
}

}  // namespace
}  // namespace rill
