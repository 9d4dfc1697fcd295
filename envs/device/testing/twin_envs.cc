// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/testing/twin_envs.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/device/testing/copy_simulator.h"
#include "rill/envs/device/testing/fake_simulator.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {

TensorDictSpec TwinEnvs::Observation() {
  TensorDictSpec spec;
  const auto set = [&spec](absl::string_view key, const LeafSpec& leaf) {
    RILL_EXPECT_OK(spec.Set(key, leaf));
  };
  set("observation", LeafSpec::Bounded(DType::kFloat32, {4}, -2, 2));
  set("wide", LeafSpec::Bounded(DType::kFloat64, {3}, -1e6, 1e6));
  set("pixels", LeafSpec::Bounded(DType::kUInt8, {6, 5, 3}, 0, 255));
  set("planes", LeafSpec::Bounded(DType::kFloat32, {3, 6, 5}, -1, 1));
  set("lives", LeafSpec::Bounded(DType::kInt16, {1}, 0, 3));
  set("legal", LeafSpec::OneHot(3));
  return spec;
}

namespace {

// Observations are random members of the spec, functions of the episode, the
// step and the bytes of the action. Rewards are in [-2, 2), some are 0, and one
// step in eight ends an episode.
class RandomLane final : public Lane {
 public:
  RandomLane(const TensorDictSpec& observation, const TensorDict& row)
      : observation_(observation), row_(row) {}

  absl::Status Reset(const Rng& rng, uint64_t episode) override {
    rng_ = rng;
    batch_ = episode << 20;
    return Write("");
  }

  absl::StatusOr<LaneStep> Step() override {
    RILL_ASSIGN_OR_RETURN(const Tensor action, row_.Get("action"));
    uint64_t sum = 0;
    for (int64_t i = 0; i < action.size_bytes(); ++i) {
      sum = 31 * sum + static_cast<uint64_t>(action.raw_data()[i]);
    }
    batch_ += 1 + sum % 64;
    RILL_RETURN_IF_ERROR(Write("next/"));
    const uint64_t bits = rng_->Bits64(batch_, 1);
    LaneStep step;
    step.reward =
        bits % 5 == 0 ? 0 : static_cast<float>(bits % 4096) / 1024.0f - 2.0f;
    step.terminated = (bits >> 20) % 8 == 0;
    return step;
  }

 private:
  absl::Status Write(absl::string_view prefix) {
    RILL_ASSIGN_OR_RETURN(const TensorDict made,
                          observation_.Random({}, *rng_, batch_));
    for (const TensorDictSpec::Leaf& leaf : observation_.leaves()) {
      RILL_ASSIGN_OR_RETURN(const Tensor to,
                            row_.Get(absl::StrCat(prefix, leaf.key)));
      RILL_RETURN_IF_ERROR(to.CopyFrom(*made.Find(leaf.key)));
    }
    return absl::OkStatus();
  }

  const TensorDictSpec observation_;
  const TensorDict row_;
  std::optional<Rng> rng_;
  uint64_t batch_ = 0;
};

absl::StatusOr<std::unique_ptr<Env>> MakeHostEnv(const LeafSpec& action) {
  EnvSpec spec = {.name = "Random",
                  .lanes = TwinEnvs::kLanes,
                  .observation = TwinEnvs::Observation()};
  RILL_RETURN_IF_ERROR(spec.action.Set("action", action));
  return MakeLaneEnv(
      spec,
      [](int64_t,
         const TensorDict& row) -> absl::StatusOr<std::unique_ptr<Lane>> {
        return std::make_unique<RandomLane>(TwinEnvs::Observation(), row);
      },
      {});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> TwinEnvs::OnDevice(
    const LeafSpec& action, const DeviceEnvOptions& options) {
  return MakeFakeDeviceEnv(MakeHostEnv(action),
                           {.fills_in_place = options.fills_in_place},
                           options.check_actions);
}

absl::StatusOr<TwinEnvs> TwinEnvs::Create(const TransformsUnderTest& transforms,
                                          const DeviceEnvOptions& options,
                                          const Stream* stream) {
  RILL_ASSIGN_OR_RETURN(auto there, OnDevice(transforms.action, options));
  return CreateWith(std::move(there), transforms, stream);
}

absl::StatusOr<TwinEnvs> TwinEnvs::CreateOn(
    Device device, const TransformsUnderTest& transforms,
    const Stream* stream) {
  RILL_ASSIGN_OR_RETURN(auto env, MakeHostEnv(transforms.action));
  EnvSpec spec = env->spec();
  spec.device = device;
  RILL_ASSIGN_OR_RETURN(auto simulator,
                        MakeCopySimulator(std::move(env), device));
  RILL_ASSIGN_OR_RETURN(
      auto there, MakeDeviceEnv(std::move(spec), std::move(simulator), {}));
  return CreateWith(std::move(there), transforms, stream);
}

absl::StatusOr<TwinEnvs> TwinEnvs::CreateWith(
    std::unique_ptr<Env> there, const TransformsUnderTest& transforms,
    const Stream* stream) {
  TwinEnvs twins;
  RILL_ASSIGN_OR_RETURN(auto host, MakeHostEnv(transforms.action));
  RILL_ASSIGN_OR_RETURN(
      twins.host_, TransformedEnv::Create(std::move(host), transforms.make()));
  RILL_ASSIGN_OR_RETURN(twins.there_, TransformedEnv::Create(
                                          std::move(there), transforms.make()));
  for (auto* env : {&twins.host_, &twins.there_}) {
    if (transforms.make_outer == nullptr) continue;
    RILL_ASSIGN_OR_RETURN(
        *env, TransformedEnv::Create(std::move(*env), transforms.make_outer()));
  }
  for (TransformedEnv* env : {twins.host_.get(), twins.there_.get()}) {
    RILL_RETURN_IF_ERROR(env->Seed(7));
    const bool is_host = env == twins.host_.get();
    RILL_ASSIGN_OR_RETURN(
        auto driver,
        StepDriver::Create(env, nullptr, is_host ? nullptr : stream));
    twins.drivers_.push_back(std::move(driver));
  }
  return twins;
}

absl::Status TwinEnvs::ResetAll() {
  for (StepDriver& driver : drivers_) {
    RILL_RETURN_IF_ERROR(driver.ResetAll());
  }
  return Compare(/*has_stepped=*/false);
}

absl::Status TwinEnvs::Step(uint64_t i) {
  RILL_ASSIGN_OR_RETURN(
      const TensorDict actions,
      host_->spec().action.Random({kLanes}, Rng(3, RngStream::kUser), i));
  for (StepDriver& driver : drivers_) {
    RILL_RETURN_IF_ERROR(
        driver.step().Find("action")->CopyFrom(*actions.Find("action")));
    RILL_RETURN_IF_ERROR(driver.Step());
  }
  return Compare(/*has_stepped=*/true);
}

absl::Status TwinEnvs::Reset(uint64_t i) {
  RILL_ASSIGN_OR_RETURN(const auto done, host_->step().Flat<bool>("next/done"));
  std::vector<uint8_t> mask(done.begin(), done.end());
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (Rng(i).Bits64(lane, 0) % 8 == 0) mask[lane] = 1;
  }
  for (StepDriver& driver : drivers_) {
    RILL_RETURN_IF_ERROR(driver.Carry());
    RILL_RETURN_IF_ERROR(driver.Reset(mask));
  }
  return Compare(/*has_stepped=*/false);
}

absl::Status TwinEnvs::Compare(bool has_stepped) {
  // Behind a stream of the driver's own.
  RILL_RETURN_IF_ERROR(drivers_[1].ReadEnds());
  RILL_ASSIGN_OR_RETURN(TensorDict there, there_->step().To(Device::Cpu()));
  TensorDict host = host_->step();
  if (!has_stepped) {
    RILL_ASSIGN_OR_RETURN(there, there.Exclude({"next"}));
    RILL_ASSIGN_OR_RETURN(host, host.Exclude({"next"}));
  }
  return there.CheckEqual(host);
}

absl::Status TwinEnvs::CompareStates() {
  RILL_ASSIGN_OR_RETURN(const TensorDict there, there_->SaveTransforms());
  RILL_ASSIGN_OR_RETURN(const TensorDict host, host_->SaveTransforms());
  // On a device the environment's own root may be there too.
  TensorDict shared;
  for (const std::string& key : host.LeafKeys()) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, there.Get(key));
    RILL_RETURN_IF_ERROR(shared.Set(key, std::move(leaf)));
  }
  TensorDict want;
  for (const std::string& key : host.LeafKeys()) {
    RILL_RETURN_IF_ERROR(want.Set(key, *host.Find(key)));
  }
  return shared.CheckEqual(want);
}

}  // namespace rill
