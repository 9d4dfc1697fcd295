// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/frame_skip.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/envs/wrappers/lane_leaves.h"
#include "rill/envs/wrappers/wrapper_state.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using envs_internal::CodeOfFailure;
using envs_internal::CopyLane;
using envs_internal::IsRefusal;
using envs_internal::LaneLeaves;

constexpr absl::string_view kStep = "FrameSkip::BeginStep";
constexpr absl::string_view kType = "FrameSkip";
constexpr int64_t kStateVersion = 1;

class FrameSkip final : public envs_internal::EnvWrapper {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      std::unique_ptr<Env> env, const FrameSkipOptions& options) {
    // Leaves of its own: those of the environment change on the way.
    RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(env->spec()));
    RILL_ASSIGN_OR_RETURN(
        LaneLeaves inner,
        LaneLeaves::Of("FrameSkip", env->spec(), env->step()));
    RILL_ASSIGN_OR_RETURN(LaneLeaves outer,
                          LaneLeaves::Of("FrameSkip", env->spec(), step));
    return std::make_unique<FrameSkip>(std::move(env), std::move(step),
                                       std::move(inner), std::move(outer),
                                       options);
  }
  FrameSkip(std::unique_ptr<Env> env, TensorDict step, LaneLeaves inner,
            LaneLeaves outer, const FrameSkipOptions& options)
      : EnvWrapper(std::move(env), std::move(step)),
        options_(options),
        inner_(std::move(inner)),
        outer_(std::move(outer)),
        done_(static_cast<size_t>(lanes()), 0),
        taken_(done_.size()),
        resets_(done_.size()) {}

  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::Status EndStep() override { return absl::OkStatus(); }
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  absl::Status CheckDone() const;
  absl::Status CutOff(const absl::Status& why);
  void AddRewards(int64_t lane);
  void TakeLane(int64_t lane);

  const FrameSkipOptions options_;
  const LaneLeaves inner_;  // Of the environment.
  const LaneLeaves outer_;
  std::vector<uint8_t> done_;   // Lanes that wait for a reset of the caller.
  std::vector<uint8_t> taken_;  // Lanes whose step is over.
  std::vector<uint8_t> resets_;
};

absl::Status FrameSkip::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(inner().Reset(mask));
  for (size_t lane = 0; lane < done_.size(); ++lane) {
    if (mask.lanes[lane] == 0) continue;
    done_[lane] = 0;
    CopyLane(inner_.root, outer_.root, static_cast<int64_t>(lane));
  }
  return absl::OkStatus();
}

// Lanes that are done here may go on below. A wrong action has precedence.
absl::Status FrameSkip::CheckDone() const {
  const auto done = std::find(done_.begin(), done_.end(), 1);
  if (done == done_.end()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(CheckActions(kStep, spec(), step()));
  return FailedPrecondition(kStep, ": lane ", done - done_.begin(), " of ",
                            name(), " is done; reset it first");
}

absl::Status FrameSkip::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckDone());
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    CopyLane(outer_.actions, inner_.actions, lane);
  }
  const absl::Span<const bool> done = inner_.done.As<bool>();
  // A lane is taken once a step: at its end, or at the last frame.
  std::fill(taken_.begin(), taken_.end(), 0);
  // The first step refuses what is wrong before a lane has moved.
  for (int64_t i = 0; i < options_.frame_skip; ++i) {
    absl::Status status;
    if (i > 0) status = inner().Reset(resets_);
    if (status.ok()) status = inner().Step();
    if (i == 0 && IsRefusal(status)) return status;
    if (!status.ok()) return CutOff(status);
    // Behind the first step, as a refused one changes nothing.
    if (i == 0) {
      for (const BoundLeaf& reward : outer_.rewards) {
        std::memset(reward.data, 0, reward.rows * reward.width);
      }
    }
    for (size_t lane = 0; lane < done_.size(); ++lane) {
      // Also where the lane was taken: it is stepped along, and a step of a
      // lane that is done is refused.
      resets_[lane] = done[lane];
      if (taken_[lane] != 0) continue;
      AddRewards(static_cast<int64_t>(lane));
      if (!done[lane] && i + 1 < options_.frame_skip) continue;
      TakeLane(static_cast<int64_t>(lane));
    }
  }
  return absl::OkStatus();
}

// The environment has failed on the way. A lane whose step is not over cannot
// be left between two frames, so all of those count as failed.
absl::Status FrameSkip::CutOff(const absl::Status& why) {
  std::vector<size_t> failed;
  for (size_t lane = 0; lane < taken_.size(); ++lane) {
    if (taken_[lane] != 0) continue;
    RILL_RETURN_IF_ERROR(
        CutOffLane(spec(), step(), static_cast<int64_t>(lane)));
    done_[lane] = 1;
    failed.push_back(lane);
  }
  return absl::Status(
      CodeOfFailure(why),
      absl::StrCat(kStep, ": lanes ", absl::StrJoin(failed, ", "), ": ",
                   why.message()));
}

void FrameSkip::AddRewards(int64_t lane) {
  for (size_t i = 0; i < inner_.rewards.size(); ++i) {
    const absl::Span<const float> from = inner_.rewards[i].As<float>();
    const absl::Span<float> to = outer_.rewards[i].As<float>();
    const size_t width = from.size() / done_.size();
    for (size_t k = lane * width; k < (lane + 1) * width; ++k) to[k] += from[k];
  }
}

// The lane's step is over.
void FrameSkip::TakeLane(int64_t lane) {
  CopyLane(inner_.next, outer_.next, lane);
  const auto at = static_cast<size_t>(lane);
  done_[at] = inner_.done.As<bool>()[at];
  taken_[at] = 1;
}

absl::StatusOr<TensorDict> FrameSkip::SaveState() const {
  StateWriter state(kType, kStateVersion);
  state.Entry(envs_internal::kInnerState, inner().SaveState());
  state.List<bool>("done", done_, {lanes(), 1});
  state.List<int64_t>("frame_skip", {options_.frame_skip}, {1});
  return std::move(state).Finish();
}

absl::Status FrameSkip::LoadState(const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(auto done,
                        state.List<bool>("done", Shape({lanes(), 1})));
  RILL_ASSIGN_OR_RETURN(const auto skip,
                        state.List<int64_t>("frame_skip", Shape({1})));
  if (skip[0] != options_.frame_skip) {
    return state.DoesNotFit(absl::StrCat("frame_skip: got ", skip[0], ", want ",
                                         options_.frame_skip));
  }
  RILL_RETURN_IF_ERROR(envs_internal::LoadInner(state, &inner()));
  done_ = std::move(done);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeFrameSkip(
    std::unique_ptr<Env> env, const FrameSkipOptions& options) {
  if (env == nullptr) {
    return InvalidArgument("MakeFrameSkip: env: got null, want an environment");
  }
  if (options.frame_skip < 1) {
    return InvalidArgument("MakeFrameSkip: frame_skip: got ",
                           options.frame_skip, ", want > 0");
  }
  if (!env->spec().own_episodes.empty()) {
    return InvalidArgument(
        "MakeFrameSkip: env: got ", env->name(),
        " whose groups have episodes of their own, want one of whole lanes");
  }
  if (options.frame_skip > 1 && !env->spec().legal_actions.empty()) {
    return InvalidArgument(
        "MakeFrameSkip: env: got ", env->name(),
        " with legal actions, want one without: an action that is legal in one "
        "frame may not be in the next");
  }
  return FrameSkip::Create(std::move(env), options);
}

}  // namespace rill
