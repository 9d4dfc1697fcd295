// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/time_limit.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/envs/wrappers/wrapper_state.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr absl::string_view kMake = "MakeTimeLimit";
constexpr absl::string_view kStep = "TimeLimit::BeginStep";
constexpr absl::string_view kType = "TimeLimit";
constexpr int64_t kStateVersion = 1;

class TimeLimit final : public envs_internal::EnvWrapper {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      std::unique_ptr<Env> env, const TimeLimitOptions& options) {
    auto limited = absl::WrapUnique(new TimeLimit(std::move(env), options));
    RILL_RETURN_IF_ERROR(limited->Bind()) << kMake;
    return limited;
  }

  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::Status EndStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  TimeLimit(std::unique_ptr<Env> env, const TimeLimitOptions& options)
      : EnvWrapper(std::move(env)),
        max_steps_(options.max_steps),
        steps_(static_cast<size_t>(lanes()), options.max_steps) {}

  absl::Status Bind();
  absl::Status CheckRunning() const;
  void Count();

  const int64_t max_steps_;
  // Steps of each lane's episode. max_steps_: the lane waits for a reset.
  std::vector<int64_t> steps_;
  bool is_stepping_ = false;  // Between BeginStep and EndStep.
  // done and truncated of lanes and groups, below next; first the lanes' done.
  std::vector<absl::Span<bool>> flags_;
};

absl::Status TimeLimit::Bind() {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(spec()));
  for (const TensorDictSpec::Leaf& leaf : flags.leaves()) {
    if (absl::EndsWith(leaf.key, "terminated")) continue;
    RILL_ASSIGN_OR_RETURN(flags_.emplace_back(),
                          step().Flat<bool>(absl::StrCat("next/", leaf.key)));
  }
  return absl::OkStatus();
}

absl::Status TimeLimit::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckMask("TimeLimit::Reset", spec(), mask));
  const absl::Status status = inner().Reset(mask);
  // A lane whose reset failed waits for another one.
  for (size_t lane = 0; lane < steps_.size(); ++lane) {
    if (mask.lanes[lane] != 0) steps_[lane] = status.ok() ? 0 : max_steps_;
  }
  return status;
}

// Lanes at the limit could go on in the environment. A wrong action has
// precedence.
absl::Status TimeLimit::CheckRunning() const {
  const auto idle = std::find(steps_.begin(), steps_.end(), max_steps_);
  if (idle == steps_.end()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(CheckActions(kStep, spec(), step()));
  return FailedPrecondition(kStep, ": lane ", idle - steps_.begin(), " of ",
                            name(),
                            " is done or was never reset; call Reset first");
}

absl::Status TimeLimit::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckRunning());
  const absl::Status begun = inner().BeginStep();
  if (envs_internal::IsRefusal(begun)) return begun;
  is_stepping_ = begun.ok();
  // A simulator failed and no EndStep follows; the other lanes have stepped and
  // are counted here.
  if (!begun.ok()) Count();
  return begun;
}

absl::Status TimeLimit::EndStep() {
  const absl::Status ended = inner().EndStep();
  if (std::exchange(is_stepping_, false)) Count();
  return ended;
}

void TimeLimit::Count() {
  for (size_t lane = 0; lane < steps_.size(); ++lane) {
    if (++steps_[lane] < max_steps_) {
      // Ended before the limit.
      if (flags_[0][lane]) steps_[lane] = max_steps_;
      continue;
    }
    for (const absl::Span<bool> flag : flags_) {
      const size_t width = flag.size() / steps_.size();
      std::fill_n(flag.begin() + lane * width, width, true);
    }
  }
}

absl::StatusOr<TensorDict> TimeLimit::SaveState() const {
  StateWriter state(kType, kStateVersion);
  state.Entry(envs_internal::kInnerState, inner().SaveState());
  state.List<int64_t>("steps", steps_, {lanes(), 1});
  return std::move(state).Finish();
}

absl::Status TimeLimit::LoadState(const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(auto steps,
                        state.List<int64_t>("steps", Shape({lanes(), 1})));
  for (size_t lane = 0; lane < steps.size(); ++lane) {
    if (steps[lane] >= 0 && steps[lane] <= max_steps_) continue;
    return state.DoesNotFit(absl::StrCat("steps of lane ", lane, ": got ",
                                         steps[lane], ", want [0, ", max_steps_,
                                         "]"));
  }
  RILL_RETURN_IF_ERROR(envs_internal::LoadInner(state, &inner()));
  steps_ = std::move(steps);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeTimeLimit(
    std::unique_ptr<Env> env, const TimeLimitOptions& options) {
  if (env == nullptr) {
    return InvalidArgument(kMake, ": env: got null, want an environment");
  }
  if (options.max_steps < 1) {
    return InvalidArgument(kMake, ": max_steps: got ", options.max_steps,
                           ", want > 0");
  }
  return TimeLimit::Create(std::move(env), options);
}

}  // namespace rill
