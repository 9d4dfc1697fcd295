// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/moved_policy.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/policies/policy.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLanes = 3;

// Leaves of a step for AsyncPolicy, beside one that no policy sees.
struct Leaves {
  TensorDict step;
  TensorDict root;
};

absl::StatusOr<Leaves> MakeLeaves(Device device, float first) {
  TensorDict step({kLanes});
  RILL_ASSIGN_OR_RETURN(
      const Tensor observation,
      Tensor::From<float>({first, first + 0.5f, first + 1}, {kLanes, 1}));
  RILL_RETURN_IF_ERROR(step.Set("observation", observation));
  RILL_RETURN_IF_ERROR(step.Set("next/observation", *observation.Clone()));
  for (const char* const key : {"memory", "next/memory"}) {
    RILL_ASSIGN_OR_RETURN(const Tensor zeros,
                          Tensor::Zeros(DType::kInt64, {kLanes, 1}));
    RILL_RETURN_IF_ERROR(step.Set(key, zeros));
  }
  RILL_RETURN_IF_ERROR(
      step.Set("action", *Tensor::Zeros(DType::kInt64, {kLanes})));
  RILL_RETURN_IF_ERROR(
      step.Set("log_prob", *Tensor::Zeros(DType::kFloat32, {kLanes, 1})));
  RILL_ASSIGN_OR_RETURN(step, step.To(device));
  RILL_ASSIGN_OR_RETURN(TensorDict root,
                        step.Select({"observation", "memory"}));
  return Leaves{.step = step, .root = root};
}

class MovedPolicyTest : public FakeDeviceTest {};

// Nothing on the fake device happens before somebody waits.
TEST_F(MovedPolicyTest, WritesWhatThePolicyWritesBesideItsLeaves) {
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  for (const bool acts_there : {true, false}) {
    const Device acting = acts_there ? Device::Fake() : Device::Cpu();
    const Device env = acts_there ? Device::Cpu() : Device::Fake();
    RILL_ASSERT_OK_AND_ASSIGN(auto moved,
                              MovedPolicy::Create(&policy, acting, stream));
    // Two environments in turn.
    for (const float first : {1.0f, 2.25f, 1.0f, 3.5f}) {
      RILL_ASSERT_OK_AND_ASSIGN(Leaves want, MakeLeaves(Device::Cpu(), first));
      RILL_ASSERT_OK(policy.Act(want.root, {}, &want.step));
      RILL_ASSERT_OK_AND_ASSIGN(Leaves got, MakeLeaves(env, first));
      RILL_ASSERT_OK(moved->Act(got.root, {}, &got.step));
      RILL_ASSERT_OK(stream.Synchronize());
      RILL_EXPECT_OK(got.step.CheckEqual(want.step));
    }
  }
}

TEST_F(MovedPolicyTest, RefusesAPolicyThatReplacesItsLeaves) {
  class Replaces final : public Policy {
    absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext&,
                                TensorDict* step) override {
      RILL_ASSIGN_OR_RETURN(Tensor action,
                            Tensor::Zeros(DType::kInt64, {kLanes}));
      RILL_RETURN_IF_ERROR(step->Set("action", action));
      return 0;
    }
  };
  Replaces policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Default(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto moved, MovedPolicy::Create(&policy, Device::Fake(), stream));
  RILL_ASSERT_OK_AND_ASSIGN(Leaves leaves, MakeLeaves(Device::Cpu(), 1));
  EXPECT_THAT(moved->Act(leaves.root, {}, &leaves.step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Policy::Act: leaf \"action\"")));
}

TEST_F(MovedPolicyTest, RefusesNoPolicyAndAnotherDevice) {
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Default(Device::Fake()));
  EXPECT_THAT(MovedPolicy::Create(nullptr, Device::Fake(), stream).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MovedPolicy::Create(&policy, Device::Fake(1), stream).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got fake:1, want cpu or that of the stream, "
                                 "fake:0")));
}

TEST_F(MovedPolicyTest, ErrorsOfTheDeviceComeBack) {
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Default(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto moved, MovedPolicy::Create(&policy, Device::Cpu(), stream));
  RILL_ASSERT_OK_AND_ASSIGN(Leaves leaves, MakeLeaves(Device::Fake(), 1));
  fake_->FailNext(FakeBackend::Operation::kCopy, 1,
                  absl::UnavailableError("copy engine"));
  EXPECT_THAT(moved->Act(leaves.root, {}, &leaves.step),
              StatusIs(absl::StatusCode::kUnavailable));
  fake_->Recover();
}

}  // namespace
}  // namespace rill
