// SPDX-License-Identifier: Apache-2.0
// The column "device" of docs/transforms.md, on the fake device and on a GPU.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/estimators/reward_to_go.h"
#include "rill/estimators/standardize_kernel.h"
#include "rill/estimators/value_estimators.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/device_table.h"

namespace rill {
namespace {

// Steps of [3, 70] with ends, in float32 or float64, some with the leaves by
// which pieces differ.
TensorDict Steps(DType dtype, const std::vector<std::string>& pieces,
                 bool has_done = true) {
  const Rng rng(3);
  TensorDict batch({3, 70});
  const auto add = [&](const std::string& key, const LeafSpec& leaf) {
    TensorDictSpec spec;
    RILL_EXPECT_OK(spec.Set(key, leaf));
    static uint64_t number = 0;
    const TensorDict made = *spec.Random({3, 70}, rng, ++number);
    RILL_EXPECT_OK(batch.Set(key, *made.Find(key)));
  };
  for (const char* key :
       {"next/reward", "state_value", "next/state_value", "log_pi", "log_mu"}) {
    add(key, LeafSpec::Bounded(dtype, {1}, -1, 1));
  }
  for (const char* key : {"next/terminated", "next/truncated"}) {
    const Tensor flags = *Tensor::Zeros(DType::kBool, {3, 70, 1});
    for (int64_t i = 0; i < 210; ++i) {
      flags.data<bool>()[i] = rng.UniformInt(key[5] == 't' ? key[6] : 0,
                                             static_cast<uint32_t>(i), 9) == 0;
    }
    RILL_EXPECT_OK(batch.Set(key, flags));
  }
  if (has_done) {
    const Tensor done = *batch.Find("next/terminated")->Clone();
    for (int64_t i = 0; i < 210; ++i) {
      done.data<bool>()[i] |= batch.Find("next/truncated")->data<bool>()[i];
    }
    RILL_EXPECT_OK(batch.Set("next/done", done));
  }
  for (const std::string& key : pieces) {
    const Tensor ids = *Tensor::Empty(DType::kInt64, {3, 70});
    for (int64_t i = 0; i < 210; ++i) ids.data<int64_t>()[i] = i / 8;
    RILL_EXPECT_OK(batch.Set(key, ids));
  }
  return batch;
}

const ValueKeys& KeysOfTeam() {
  static const auto* const keys =
      new ValueKeys{.reward = "next/team/reward",
                    .value = "team/state_value",
                    .next_value = "next/team/state_value",
                    .advantage = "team/advantage",
                    .value_target = "team/value_target"};
  return *keys;
}
// The same with numbers of two agents, and the flags of the lane.
TensorDict StepsOfAgents() {
  TensorDict batch = Steps(DType::kFloat32, {"sequence_id"});
  TensorDictSpec spec;
  for (const std::string& key :
       {KeysOfTeam().reward, KeysOfTeam().value, KeysOfTeam().next_value}) {
    RILL_EXPECT_OK(
        spec.Set(key, LeafSpec::Bounded(DType::kFloat32, {2, 1}, -1, 1)));
  }
  RILL_EXPECT_OK(batch.Update(*spec.Random({3, 70}, Rng(4), 0)));
  return batch;
}

TEST(EstimatorsDeviceTest, AreAsDocumented) {
  std::vector<DeviceCase> cases;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const std::vector<std::string>& pieces :
         {std::vector<std::string>{},
          {"sequence_id"},
          {"collector/traj_ids", "buffer_ids"}}) {
      const auto add = [&](std::unique_ptr<BatchTransform> transform,
                           TransformCall call = TransformCall::kForward) {
        cases.push_back({std::move(transform),
                         Steps(dtype, pieces, cases.size() % 2 == 0), call});
      };
      for (const bool average : {true, false}) {
        add(*GAE::Create({.gamma = 0.9, .lmbda = 0.8, .average_gae = average}));
        add(*VTrace::Create({.rho_thresh = 1.2,
                             .c_thresh = 0.9,
                             .average_adv = average,
                             .log_prob_key = "log_pi",
                             .sample_log_prob_key = "log_mu"}));
        // A device's exp may differ.
        cases.back().tolerance = 1e-5;
      }
      add(*GAE::Create({.lmbda = 0}));
      add(*TD0Estimator::Create({.gamma = 0.9}));
      add(*TD1Estimator::Create({.gamma = 0.9}));
      add(*TDLambdaEstimator::Create({.gamma = 0.9, .lmbda = 0.7}));
      add(*Reward2Go::Create({.gamma = 0.95}), TransformCall::kInverse);
      add(*DensifyReward::Create({.reward_key_out = "to_go", .discount = 0.9}));
    }
  }
  for (const bool average : {true, false}) {
    cases.push_back(
        {*GAE::Create({.average_gae = average, .keys = KeysOfTeam()}),
         StepsOfAgents()});
  }
  // Rows of no order stop each.
  cases.push_back({*TD0Estimator::Create({}), Steps(DType::kFloat32, {})});
  RILL_ASSERT_OK(cases.back().batch.SetDimNames({"batch", "rows"}));
  ExpectAsDocumented("Estimators", cases, DeviceUnderTest());
}

TEST(EstimatorsDeviceTest, StandardizingHasNoRace) {
  using estimators_internal::StandardizeKernel;
  const Rng rng(5);
  std::vector<double> values;
  for (uint32_t i = 0; i < 3000; ++i) {
    values.push_back(rng.UniformDouble(0, i));
  }
  std::vector<double> others = values;
  const KernelGrid grid = {.blocks = 1,
                           .threads = StandardizeKernel<double>::kThreads};
  RunGridOnHost(StandardizeKernel<double>{values.data(), 3000}, grid, 7);
  RunGridOnThreads(StandardizeKernel<double>{others.data(), 3000}, grid);
  EXPECT_EQ(values, others);
}

}  // namespace
}  // namespace rill
