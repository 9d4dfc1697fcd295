// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/classic_env.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/episode_counters.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::envs_internal {
namespace {

constexpr int64_t kStateVersion = 1;

constexpr int64_t kMaxLanes = int64_t{1} << 30;  // That draws can number.

// Compilers make vectors of a loop whose length they know, and only where no
// store could change what it reads.
constexpr int64_t kBlock = 16;

// body(i) for each i below count.
template <typename Body>
void ForBlocks(int64_t count, const Body& body) {
  int64_t first = 0;
  for (; first + kBlock <= count; first += kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) body(first + i);
  }
  for (; first < count; ++first) body(first);
}

class ClassicEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      const ClassicTask& task, const ClassicOptions& options) {
    EnvSpec spec = {.name = std::string(task.id), .lanes = options.lanes};
    RILL_RETURN_IF_ERROR(spec.observation.Set("observation", task.observation));
    RILL_RETURN_IF_ERROR(spec.action.Set("action", task.action));
    RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(spec));
    auto env = absl::WrapUnique(
        new ClassicEnv(std::move(spec), std::move(step), task, options));
    RILL_RETURN_IF_ERROR(env->Bind());
    return env;
  }

  absl::Status Seed(uint64_t seed) override {
    std::fill(now_.seed.begin(), now_.seed.end(), seed);
    std::fill(now_.episode.begin(), now_.episode.end(), 0);
    return absl::OkStatus();
  }
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& dict) override;

 private:
  ClassicEnv(EnvSpec spec, TensorDict step, const ClassicTask& task,
             const ClassicOptions& options)
      : Env(std::move(spec), std::move(step)),
        task_(task),
        reset_caller_(absl::StrCat(task.name, "::Reset")),
        lanes_(options.lanes),
        state_size_(static_cast<int64_t>(task.low.size())),
        max_episode_steps_(options.max_episode_steps),
        state_(lanes_ * state_size_),
        now_(lanes_) {
    now_.seed.assign(lanes_, options.seed);
  }

  absl::Status Bind();
  // Unsigned: a negative number is large. A NaN fails both comparisons.
  bool IsAction(int64_t lane) const {
    return choices_ != nullptr
               ? static_cast<uint64_t>(choices_[lane]) <
                     static_cast<uint64_t>(task_.action.num_categories)
               : force_[lane] >= low_force_ && force_[lane] <= high_force_;
  }
  absl::Status CheckStep() const;
  void WriteFlags();
  absl::Status CheckState(const StateReader& reader, const double* state,
                          int64_t steps, int64_t lane) const;

  const ClassicTask task_;
  const std::string reset_caller_;
  const int64_t lanes_;
  const int64_t state_size_;
  const int64_t max_episode_steps_;
  std::vector<double> state_;  // [lanes, state_size].
  EpisodeCounters now_;
  // No lane is at its limit before the step that makes this 0.
  int64_t steps_to_limit_ = 0;

  // The leaves of the step; one of the first two is null.
  const int64_t* choices_ = nullptr;
  const float* force_ = nullptr;
  float low_force_ = 0, high_force_ = 0;
  int64_t observation_size_ = 0;
  absl::Span<float> observation_, next_observation_, reward_;
  LaneFlags flags_, next_flags_;
};

absl::Status ClassicEnv::Bind() {
  if (task_.action.domain == LeafSpec::Domain::kCategorical) {
    RILL_ASSIGN_OR_RETURN(const auto choices, step().Flat<int64_t>("action"));
    choices_ = choices.data();
  } else {
    RILL_ASSIGN_OR_RETURN(const auto force, step().Flat<float>("action"));
    force_ = force.data();
    low_force_ = static_cast<float>(task_.action.low);
    high_force_ = static_cast<float>(task_.action.high);
  }
  RILL_ASSIGN_OR_RETURN(observation_, step().Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(next_observation_,
                        step().Flat<float>("next/observation"));
  observation_size_ = static_cast<int64_t>(observation_.size()) / lanes_;
  RILL_ASSIGN_OR_RETURN(reward_, step().Flat<float>("next/reward"));
  RILL_ASSIGN_OR_RETURN(flags_, FindLaneFlags(step()));
  RILL_ASSIGN_OR_RETURN(next_flags_, FindLaneFlags(step(), "next/"));
  return absl::OkStatus();
}

absl::Status ClassicEnv::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckMask(reset_caller_, spec(), mask));
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (mask.lanes[lane] == 0) continue;
    double* state = state_.data() + lane * state_size_;
    task_.init(Rng(now_.seed[lane], RngStream::kEnv), now_.episode[lane], lane,
               state);
    ++now_.episode[lane];
    now_.steps[lane] = 0;
    now_.running[lane] = 1;
    task_.observe(state, observation_.data() + lane * observation_size_);
    flags_.Set(lane, /*is_terminated=*/false, /*is_truncated=*/false);
  }
  return absl::OkStatus();
}

// One pass without branches over all lanes. Which lane is wrong is looked for
// only when one is.
absl::Status ClassicEnv::CheckStep() const {
  // The sign of what an action outside of its range leaves here is set.
  uint64_t outside = 0;
  if (choices_ != nullptr) {
    const int64_t* const choices = choices_;
    const auto last = static_cast<uint64_t>(task_.action.num_categories - 1);
    ForBlocks(lanes_, [&](int64_t lane) {
      const auto choice = static_cast<uint64_t>(choices[lane]);
      outside |= choice | (last - choice);
    });
  } else {
    bool is_inside = true;
    for (int64_t lane = 0; lane < lanes_; ++lane) is_inside &= IsAction(lane);
    outside = is_inside ? 0 : ~uint64_t{0};
  }
  uint8_t all_run = 1;
  const uint8_t* const running = now_.running.data();
  ForBlocks(lanes_, [&](int64_t lane) { all_run &= running[lane]; });
  // outside: `choice` has the sign bit where it is negative, `last - choice`
  // where choice > last.
  const bool all_right = all_run != 0 && static_cast<int64_t>(outside) >= 0;
  if (all_right) return absl::OkStatus();
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (IsAction(lane)) continue;
    const std::string got = choices_ != nullptr ? absl::StrCat(choices_[lane])
                                                : absl::StrCat(force_[lane]);
    return InvalidArgument(task_.name, "::Step: action of lane ", lane,
                           ": got ", got, ", want ", task_.wanted);
  }
  return CheckRunning(absl::StrCat(task_.name, "::Step"), now_.running);
}

absl::Status ClassicEnv::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckStep());
  task_.step({.lanes = lanes_,
              .choice = choices_,
              .force = force_,
              .steps = now_.steps.data(),
              .state = state_.data(),
              .observation = next_observation_.data(),
              .reward = reward_.data(),
              .terminated = next_flags_.terminated.data()});
  int64_t* const steps = now_.steps.data();
  ForBlocks(lanes_, [steps](int64_t lane) { ++steps[lane]; });
  WriteFlags();
  return absl::OkStatus();
}

// The flags of a step whose `terminated` is written.
void ClassicEnv::WriteFlags() {
  uint8_t* const running = now_.running.data();
  // No lane can be truncated by this step: the flags are copies of whole
  // columns. A reset only moves a lane away from its limit, so the count holds
  // until the step for which it is 0.
  if (--steps_to_limit_ > 0 && lanes_ >= kBlock) {
    const auto size = static_cast<size_t>(lanes_);
    std::memset(next_flags_.truncated.data(), 0, size);
    std::memcpy(next_flags_.done.data(), next_flags_.terminated.data(), size);
    std::memcpy(running, next_flags_.done.data(), size);
    ForBlocks(lanes_, [running](int64_t lane) { running[lane] ^= 1; });
    return;
  }
  steps_to_limit_ = max_episode_steps_;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const int64_t left = max_episode_steps_ - now_.steps[lane];
    next_flags_.Set(lane, next_flags_.terminated[lane], left <= 0);
    running[lane] = !next_flags_.done[lane];
    // One that is at its limit begins anew before the next step.
    if (left > 0) steps_to_limit_ = std::min(steps_to_limit_, left);
  }
}

absl::StatusOr<TensorDict> ClassicEnv::SaveState() const {
  StateWriter state(task_.name, kStateVersion, {lanes_});
  state.List<double>("state", state_, {lanes_, state_size_});
  now_.Save(&state);
  return std::move(state).Finish();
}

absl::Status ClassicEnv::CheckState(const StateReader& reader,
                                    const double* state, int64_t steps,
                                    int64_t lane) const {
  const auto refuse = [&](double got, const auto&... want) {
    return reader.DoesNotFit(absl::StrCat("state of lane ", lane, ": got ", got,
                                          ", want ", want...));
  };
  for (int64_t i = 0; i < state_size_; ++i) {
    const double value = state[i];
    if (!std::isfinite(value)) return refuse(value, "finite");
    if (value < task_.low[i] || value > task_.high[i]) {
      return refuse(value, "[", task_.low[i], ", ", task_.high[i],
                    "] in element ", i);
    }
    // Such a state was never made by a step, and the next one would round it.
    if (task_.has_float_states && steps > 0 &&
        static_cast<double>(static_cast<float>(value)) != value) {
      return refuse(value, "a float32 after the first step");
    }
  }
  return absl::OkStatus();
}

absl::Status ClassicEnv::LoadState(const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const StateReader reader,
                        StateReader::Open(task_.name, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(
      EpisodeCounters counters,
      EpisodeCounters::Load(reader, lanes_, max_episode_steps_));
  RILL_ASSIGN_OR_RETURN(
      auto state, reader.List<double>("state", Shape({lanes_, state_size_})));
  RILL_RETURN_IF_ERROR(reader.CheckNothingElse());
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    RILL_RETURN_IF_ERROR(CheckState(reader, state.data() + lane * state_size_,
                                    counters.steps[lane], lane));
  }
  state_ = std::move(state);
  now_ = std::move(counters);
  // The counters are others: the next step finds the limit anew.
  steps_to_limit_ = 0;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeClassicEnv(
    const ClassicTask& task, const ClassicOptions& options) {
  const auto refuse = [&](absl::string_view option, int64_t got,
                          const auto&... want) {
    return InvalidArgument("Make", task.name, ": ", option, ": got ", got,
                           ", want ", want...);
  };
  if (options.lanes < 1 || options.lanes > kMaxLanes) {
    return refuse("lanes", options.lanes, "[1, ", kMaxLanes, "]");
  }
  if (options.max_episode_steps < 1) {
    return refuse("max_episode_steps", options.max_episode_steps, ">= 1");
  }
  return ClassicEnv::Create(task, options);
}

}  // namespace rill::envs_internal
