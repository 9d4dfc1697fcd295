// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/frame_skip.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/envs/step_spec.h"
#include "rill/envs/wrappers/lane_leaves.h"
#include "rill/envs/wrappers/wrapper_state.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace {

using envs_internal::CopyLane;
using envs_internal::LaneLeaves;

constexpr absl::string_view kStep = "FrameSkip::Step";
constexpr absl::string_view kLoad = "FrameSkip::LoadState";

class FrameSkip final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      std::unique_ptr<Env> env, const FrameSkipOptions& options) {
    auto result = std::make_unique<FrameSkip>(std::move(env), options);
    RILL_RETURN_IF_ERROR(result->Prepare());
    return result;
  }
  FrameSkip(std::unique_ptr<Env> env, const FrameSkipOptions& options)
      : env_(std::move(env)),
        options_(options),
        done_(static_cast<size_t>(env_->lanes()), 0) {}

  absl::string_view name() const override { return env_->name(); }
  int64_t lanes() const override { return env_->lanes(); }
  const TensorDictSpec& observation_spec() const override {
    return env_->observation_spec();
  }
  const LeafSpec& action_spec() const override { return env_->action_spec(); }
  absl::Status Seed(uint64_t seed) override { return env_->Seed(seed); }
  absl::Status Reset(absl::Span<const uint8_t> mask, TensorDict* root) override;
  absl::Status Step(TensorDict* step) override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  absl::Status Prepare();
  absl::Status CheckDone(const TensorDict& step) const;
  void TakeLane(int64_t lane);

  const std::unique_ptr<Env> env_;
  const FrameSkipOptions options_;
  std::vector<uint8_t> done_;  // Lanes that wait for a reset of the caller.

  TensorDict step_;    // Of the environment.
  LaneLeaves inner_;   // Its leaves.
  LaneLeaves outer_;   // The caller's.
  size_t reward_ = 0;  // Places in both.
  size_t is_done_ = 0;
  std::vector<float> sums_;     // Of rewards.
  std::vector<uint8_t> taken_;  // Lanes whose step is over.
  std::vector<uint8_t> resets_;
};

absl::Status FrameSkip::Prepare() {
  RILL_ASSIGN_OR_RETURN(step_, MakeStep(*env_));
  RILL_ASSIGN_OR_RETURN(inner_, LaneLeaves::OfStep("FrameSkip", *env_));
  RILL_ASSIGN_OR_RETURN(outer_, LaneLeaves::OfStep(std::string(kStep), *env_));
  RILL_RETURN_IF_ERROR(inner_.Bind(step_));
  reward_ = inner_.Find("next/reward");
  is_done_ = inner_.Find("next/done");
  sums_.resize(done_.size());
  taken_.resize(done_.size());
  resets_.resize(done_.size());
  return absl::OkStatus();
}

absl::Status FrameSkip::Reset(absl::Span<const uint8_t> mask,
                              TensorDict* root) {
  RILL_RETURN_IF_ERROR(env_->Reset(mask, root));
  for (size_t lane = 0; lane < done_.size(); ++lane) {
    if (mask[lane] != 0) done_[lane] = 0;
  }
  return absl::OkStatus();
}

// Lanes that are done here may go on below. A wrong action has precedence.
absl::Status FrameSkip::CheckDone(const TensorDict& step) const {
  const auto done = std::find(done_.begin(), done_.end(), 1);
  if (done == done_.end()) return absl::OkStatus();
  const Tensor& action = *step.Find("action");
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    RILL_ASSIGN_OR_RETURN(const Tensor row, action.Index(lane));
    RILL_RETURN_IF_ERROR(action_spec().CheckValues("action", {}, row))
        << kStep << ": lane " << lane;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(kStep, ": lane ", done - done_.begin(), " of ", name(),
                   " is done; reset it first"));
}

absl::Status FrameSkip::Step(TensorDict* step) {
  RILL_RETURN_IF_ERROR(outer_.Bind(*step));
  RILL_RETURN_IF_ERROR(CheckDone(*step));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    CopyLane(outer_[0], inner_[0], lane);
  }
  std::fill(sums_.begin(), sums_.end(), 0.0f);
  std::fill(taken_.begin(), taken_.end(), 0);
  // The first step refuses what is wrong before a lane has moved.
  for (int64_t i = 0; i < options_.frame_skip; ++i) {
    if (i > 0) {
      RILL_RETURN_IF_ERROR(env_->Reset(resets_, &step_)) << "in " << kStep;
    }
    RILL_RETURN_IF_ERROR(env_->Step(&step_));
    const absl::Span<const float> reward = inner_[reward_].As<float>();
    const absl::Span<const bool> done = inner_[is_done_].As<bool>();
    for (size_t lane = 0; lane < done_.size(); ++lane) {
      resets_[lane] = done[lane];
      if (taken_[lane] != 0) continue;
      sums_[lane] += reward[lane];
      if (!done[lane] && i + 1 < options_.frame_skip) continue;
      TakeLane(static_cast<int64_t>(lane));
    }
  }
  return absl::OkStatus();
}

// The lane's step is over.
void FrameSkip::TakeLane(int64_t lane) {
  for (size_t i = 1; i < inner_.size(); ++i) {
    CopyLane(inner_[i], outer_[i], lane);
  }
  const auto at = static_cast<size_t>(lane);
  outer_[reward_].As<float>()[at] = sums_[at];
  done_[at] = inner_[is_done_].As<bool>()[at];
  taken_[at] = 1;
}

absl::StatusOr<TensorDict> FrameSkip::SaveState() const {
  RILL_ASSIGN_OR_RETURN(TensorDict state, envs_internal::SaveInner(*env_));
  RILL_ASSIGN_OR_RETURN(Tensor done, Tensor::Zeros(DType::kBool, {lanes(), 1}));
  std::memcpy(done.raw_data(), done_.data(), done_.size());
  RILL_RETURN_IF_ERROR(state.Set("done", std::move(done)));
  RILL_ASSIGN_OR_RETURN(Tensor skip,
                        Tensor::From<int64_t>({options_.frame_skip}, {1}));
  RILL_RETURN_IF_ERROR(state.Set("frame_skip", std::move(skip)));
  return state;
}

absl::Status FrameSkip::LoadState(const TensorDict& state) {
  RILL_ASSIGN_OR_RETURN(const Tensor done,
                        envs_internal::ReadState(kLoad, state, "done",
                                                 DType::kBool, {lanes(), 1}));
  RILL_ASSIGN_OR_RETURN(
      const Tensor skip,
      envs_internal::ReadState(kLoad, state, "frame_skip", DType::kInt64, {1}));
  if (skip.data<int64_t>()[0] != options_.frame_skip) {
    return absl::FailedPreconditionError(
        absl::StrCat(kLoad, ": frame_skip: got ", skip.data<int64_t>()[0],
                     ", want ", options_.frame_skip));
  }
  RILL_RETURN_IF_ERROR(envs_internal::LoadInner(kLoad, state, env_.get()));
  std::copy_n(done.data<bool>(), lanes(), done_.begin());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeFrameSkip(
    std::unique_ptr<Env> env, const FrameSkipOptions& options) {
  if (env == nullptr) {
    return absl::InvalidArgumentError(
        "MakeFrameSkip: env: got null, want an environment");
  }
  if (options.frame_skip < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MakeFrameSkip: frame_skip: got ", options.frame_skip, ", want > 0"));
  }
  return FrameSkip::Create(std::move(env), options);
}

}  // namespace rill
