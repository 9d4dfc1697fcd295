// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/testing/counting_env.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/envs/lane_rows.h"

namespace rill {
namespace {

constexpr int64_t kActions = 3;

class CountingEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      const CountingEnvOptions& options) {
    auto env = absl::WrapUnique(new CountingEnv(options));
    RILL_RETURN_IF_ERROR(env->observation_spec_.Set(
        "observation", LeafSpec::Unbounded(DType::kFloat32, {1})));
    RILL_RETURN_IF_ERROR(
        env->state_spec_.Set("steps", LeafSpec::Unbounded(DType::kInt64, {1})));
    RILL_RETURN_IF_ERROR(
        env->state_spec_.Set("running", LeafSpec::Binary({1})));
    return env;
  }

  absl::string_view name() const override { return "Counting"; }
  int64_t lanes() const override { return options_.lanes; }
  const TensorDictSpec& observation_spec() const override {
    return observation_spec_;
  }
  const LeafSpec& action_spec() const override { return action_spec_; }
  absl::Status Seed(uint64_t) override { return absl::OkStatus(); }
  absl::Status Reset(absl::Span<const uint8_t> mask, TensorDict* root) override;
  absl::Status Step(TensorDict* step) override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  explicit CountingEnv(const CountingEnvOptions& options)
      : options_(options),
        action_spec_(LeafSpec::Categorical(kActions)),
        steps_(options.lanes),
        running_(options.lanes) {}

  int64_t EpisodeSteps(int64_t lane) const {
    return options_.episode_steps + lane * options_.stagger_steps;
  }
  absl::Status CheckStep(absl::Span<const int64_t> actions) const;

  CountingEnvOptions options_;
  TensorDictSpec observation_spec_;
  TensorDictSpec state_spec_;
  LeafSpec action_spec_;
  std::vector<int64_t> steps_;
  std::vector<uint8_t> running_;
};

absl::Status CountingEnv::Reset(absl::Span<const uint8_t> mask,
                                TensorDict* root) {
  constexpr absl::string_view kCaller = "CountingEnv::Reset";
  RILL_RETURN_IF_ERROR(CheckLaneMask(kCaller, mask, lanes()));
  RILL_ASSIGN_OR_RETURN(
      absl::Span<float> observation,
      LaneRows<float>(kCaller, *root, "observation", {lanes(), 1}));
  RILL_ASSIGN_OR_RETURN(LaneFlags flags,
                        FindLaneFlags(kCaller, *root, lanes()));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (mask[lane] == 0) continue;
    steps_[lane] = 0;
    running_[lane] = 1;
    observation[lane] = 0;
    flags.Set(lane, /*is_terminated=*/false, /*is_truncated=*/false);
  }
  return absl::OkStatus();
}

absl::Status CountingEnv::CheckStep(absl::Span<const int64_t> actions) const {
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (actions[lane] < 0 || actions[lane] >= kActions) {
      return absl::InvalidArgumentError(
          absl::StrCat("CountingEnv::Step: action of lane ", lane, ": got ",
                       actions[lane], ", want [0, ", kActions - 1, "]"));
    }
  }
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (running_[lane] != 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("CountingEnv::Step: lane ", lane,
                     " is done or was never reset; call Reset first"));
  }
  return absl::OkStatus();
}

absl::Status CountingEnv::Step(TensorDict* step) {
  constexpr absl::string_view kCaller = "CountingEnv::Step";
  RILL_ASSIGN_OR_RETURN(absl::Span<const int64_t> actions,
                        LaneRows<int64_t>(kCaller, *step, "action", {lanes()}));
  RILL_ASSIGN_OR_RETURN(const TensorDict* next, FindNext(kCaller, *step));
  const Shape column = {lanes(), 1};
  RILL_ASSIGN_OR_RETURN(
      absl::Span<float> observation,
      LaneRows<float>(kCaller, *next, "observation", column, "next/"));
  RILL_ASSIGN_OR_RETURN(
      absl::Span<float> reward,
      LaneRows<float>(kCaller, *next, "reward", column, "next/"));
  RILL_ASSIGN_OR_RETURN(LaneFlags flags,
                        FindLaneFlags(kCaller, *next, lanes(), "next/"));
  RILL_RETURN_IF_ERROR(CheckStep(actions));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    ++steps_[lane];
    const bool is_end = steps_[lane] >= EpisodeSteps(lane);
    observation[lane] = reward[lane] = static_cast<float>(steps_[lane]);
    flags.Set(lane, is_end && !options_.ends_truncated,
              is_end && options_.ends_truncated);
    running_[lane] = !is_end;
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> CountingEnv::SaveState() const {
  if (!options_.can_save) {
    return absl::UnimplementedError("CountingEnv::SaveState: can_save is off");
  }
  RILL_ASSIGN_OR_RETURN(TensorDict state, state_spec_.Zero({lanes()}));
  RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> steps,
                        state.Flat<int64_t>("steps"));
  RILL_ASSIGN_OR_RETURN(absl::Span<bool> running, state.Flat<bool>("running"));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    steps[lane] = steps_[lane];
    running[lane] = running_[lane] != 0;
  }
  return state;
}

absl::Status CountingEnv::LoadState(const TensorDict& state) {
  constexpr absl::string_view kCaller = "CountingEnv::LoadState";
  if (!options_.can_save) {
    return absl::UnimplementedError(absl::StrCat(kCaller, ": can_save is off"));
  }
  RILL_RETURN_IF_ERROR(state_spec_.CheckLayout(kCaller, state));
  RILL_ASSIGN_OR_RETURN(
      absl::Span<const int64_t> steps,
      LaneRows<int64_t>(kCaller, state, "steps", {lanes(), 1}));
  RILL_ASSIGN_OR_RETURN(
      absl::Span<const bool> running,
      LaneRows<bool>(kCaller, state, "running", {lanes(), 1}));
  steps_.assign(steps.begin(), steps.end());
  running_.assign(running.begin(), running.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeCountingEnv(
    const CountingEnvOptions& options) {
  if (options.lanes < 1 || options.episode_steps < 1 ||
      options.stagger_steps < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MakeCountingEnv: lanes, episode_steps, stagger_steps: got ",
        options.lanes, ", ", options.episode_steps, ", ", options.stagger_steps,
        ", want >= 1, >= 1, >= 0"));
  }
  return CountingEnv::Create(options);
}

}  // namespace rill
