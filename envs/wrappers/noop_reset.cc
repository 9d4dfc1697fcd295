// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/noop_reset.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/envs/wrappers/lane_leaves.h"
#include "rill/envs/wrappers/wrapper_state.h"
#include "rill/tensordict/state/state_dict.h"

namespace rill {
namespace {

using envs_internal::CopyLane;
using envs_internal::LaneLeaves;

constexpr absl::string_view kMake = "MakeNoopReset";
constexpr absl::string_view kReset = "NoopReset::Reset";
constexpr absl::string_view kType = "NoopReset";
constexpr int64_t kStateVersion = 1;

constexpr int kMaxTrials = 10;

// Substreams of the environment's stream.
constexpr uint16_t kNumberStream = 1;
constexpr uint16_t kActionStream = 2;

class NoopReset final : public envs_internal::EnvWrapper {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      std::unique_ptr<Env> env, const NoopResetOptions& options) {
    auto result = std::make_unique<NoopReset>(std::move(env), options);
    RILL_RETURN_IF_ERROR(result->Prepare());
    return result;
  }
  NoopReset(std::unique_ptr<Env> env, const NoopResetOptions& options)
      : EnvWrapper(std::move(env)),
        options_(options),
        action_spec_(*spec().action.Find("action")),
        seed_(options.seed),
        resets_(static_cast<size_t>(lanes()), 0),
        actions_(resets_.size(), 0),
        runs_(resets_.size()) {}

  absl::Status Seed(uint64_t seed) override;
  absl::Status Reset(const ResetMask& mask) override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  // A lane that is on its way through its actions.
  struct Run {
    int64_t wanted = 0;
    int64_t done = 0;
    int trials = 0;
    bool is_active() const { return wanted > 0; }
  };

  absl::Status Prepare();
  int64_t DrawNumber(size_t lane);
  absl::Status RunAll(absl::Span<const uint8_t> others,
                      const LaneLeaves& result);
  absl::Status ChooseActions();
  absl::Status StepRuns(const LaneLeaves& result, TensorDict* merged);
  absl::Status EndTrial(size_t lane);
  bool has_lanes() const { return lanes() > 1; }

  const NoopResetOptions options_;
  const LeafSpec action_spec_;
  uint64_t seed_ = 0;
  std::vector<int64_t> resets_;   // Of each lane since Seed.
  std::vector<int64_t> actions_;  // That were drawn for it.

  LaneLeaves leaves_;
  Tensor action_;  // [1]: a random one.
  Tensor idle_;    // [1]: of lanes whose steps do not count.
  std::vector<Run> runs_;
};

absl::Status NoopReset::Prepare() {
  RILL_ASSIGN_OR_RETURN(leaves_, LaneLeaves::Of("NoopReset", spec(), step()));
  if (options_.noop_action.has_value()) {
    RILL_RETURN_IF_ERROR(
        action_spec_.CheckValues("action", {}, *options_.noop_action))
        << kMake << ": noop_action";
    RILL_ASSIGN_OR_RETURN(idle_, options_.noop_action->To(Device::Cpu()));
    RILL_ASSIGN_OR_RETURN(idle_, idle_.Contiguous());
  } else {
    RILL_ASSIGN_OR_RETURN(idle_, action_spec_.Random({1}, Rng(0), 0));
  }
  if (!has_lanes()) return absl::OkStatus();
  const absl::StatusOr<TensorDict> state = inner().SaveState();
  if (state.ok()) return absl::OkStatus();
  return absl::Status(
      state.status().code(),
      absl::StrCat(kMake, ": env: got ", lanes(), " lanes of ", name(),
                   " that cannot save its state (", state.status().message(),
                   "), want one that can, or one lane"));
}

absl::Status NoopReset::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(inner().Seed(seed));
  seed_ = seed;
  std::fill(resets_.begin(), resets_.end(), 0);
  std::fill(actions_.begin(), actions_.end(), 0);
  return absl::OkStatus();
}

int64_t NoopReset::DrawNumber(size_t lane) {
  const auto reset = static_cast<uint64_t>(resets_[lane]++);
  if (!options_.random) return options_.noops;
  return Rng(seed_, RngStream::kEnv, kNumberStream)
      .UniformInt(reset, static_cast<uint32_t>(lane), options_.noops + 1);
}

absl::Status NoopReset::Reset(const ResetMask& mask) {
  // Lanes with no actions to take are through with this.
  RILL_RETURN_IF_ERROR(inner().Reset(mask));
  std::vector<uint8_t> others(mask.lanes.size(), 0);
  bool is_on_its_way = false;
  for (size_t lane = 0; lane < others.size(); ++lane) {
    others[lane] = mask.lanes[lane] == 0;
    runs_[lane] = {};
    if (mask.lanes[lane] == 0) continue;
    runs_[lane].wanted = DrawNumber(lane);
    is_on_its_way |= runs_[lane].is_active();
  }
  if (!is_on_its_way) return absl::OkStatus();
  // The environment steps in the leaves that the caller sees.
  TensorDict leaves = step();
  RILL_ASSIGN_OR_RETURN(const TensorDict kept, leaves.Clone());
  RILL_ASSIGN_OR_RETURN(const LaneLeaves result,
                        LaneLeaves::Of(kReset, spec(), kept));
  // Also after an error the rows of lanes that did not begin are the caller's.
  const absl::Status status = RunAll(others, result);
  RILL_RETURN_IF_ERROR(leaves.CopyFrom(kept));
  RILL_RETURN_IF_ERROR(status) << "in " << kReset;
  return absl::OkStatus();
}

// Lanes that are through leave their root in `result`.
absl::Status NoopReset::RunAll(absl::Span<const uint8_t> others,
                               const LaneLeaves& result) {
  TensorDict merged;
  if (has_lanes()) {
    RILL_ASSIGN_OR_RETURN(merged, inner().SaveState());
    // Lanes are copied into it, and its tensors may be those of other states.
    RILL_ASSIGN_OR_RETURN(merged, merged.Clone());
    // So that they can be stepped along.
    RILL_RETURN_IF_ERROR(inner().Reset(others));
  }
  while (std::any_of(runs_.begin(), runs_.end(),
                     [](const Run& run) { return run.is_active(); })) {
    RILL_RETURN_IF_ERROR(StepRuns(result, &merged));
  }
  // `merged` is the state before all steps, into which each lane that was
  // through has put its rows. One lane alone needs none of it: no other has
  // moved.
  return has_lanes() ? inner().LoadState(merged) : absl::OkStatus();
}

absl::Status NoopReset::ChooseActions() {
  const BoundLeaf& action = leaves_.actions[0];
  const Rng rng(seed_, RngStream::kEnv, kActionStream);
  for (size_t lane = 0; lane < runs_.size(); ++lane) {
    const std::byte* from = idle_.raw_data();
    if (runs_[lane].is_active() && !options_.noop_action.has_value()) {
      // A number of its own for each action of each lane: actions of a lane do
      // not depend on when other lanes were reset. Room for 2^40 actions a
      // lane.
      const uint64_t batch = (static_cast<uint64_t>(lane) << 40) +
                             static_cast<uint64_t>(actions_[lane]++);
      if (!action_.is_valid()) {
        RILL_ASSIGN_OR_RETURN(action_, action_spec_.Random({1}, rng, batch));
      } else {
        RILL_RETURN_IF_ERROR(
            action_spec_.RandomInto({1}, rng, batch, &action_));
      }
      from = action_.raw_data();
    }
    std::memcpy(action.data + static_cast<int64_t>(lane) * action.width, from,
                static_cast<size_t>(action.width));
  }
  return absl::OkStatus();
}

// One step of all lanes. A lane that is through leaves its root in `result` and
// its state in `merged`.
absl::Status NoopReset::StepRuns(const LaneLeaves& result, TensorDict* merged) {
  RILL_RETURN_IF_ERROR(ChooseActions());
  RILL_RETURN_IF_ERROR(inner().Step());
  const absl::Span<const bool> done = leaves_.done.As<bool>();
  std::vector<uint8_t> through(runs_.size(), 0);
  std::vector<uint8_t> ended(runs_.size(), 0);
  bool is_through = false;
  for (size_t lane = 0; lane < runs_.size(); ++lane) {
    ended[lane] = done[lane];
    Run& run = runs_[lane];
    if (!run.is_active()) continue;
    if (done[lane]) {
      RILL_RETURN_IF_ERROR(EndTrial(lane));
    } else if (++run.done == run.wanted) {
      through[lane] = 1;
      is_through = true;
      run = {};
      CopyLane(leaves_.next, result.root, static_cast<int64_t>(lane));
    }
  }
  if (is_through && has_lanes()) {
    RILL_ASSIGN_OR_RETURN(const TensorDict state, inner().SaveState());
    RILL_RETURN_IF_ERROR(
        envs_internal::CopyLanesOfState(inner(), through, state, merged));
  }
  // Lanes whose run is over or that are not of the mask, too: all lanes step
  // next time.
  return inner().Reset(ended);
}

absl::Status NoopReset::EndTrial(size_t lane) {
  Run& run = runs_[lane];
  run.done = 0;
  if (++run.trials < kMaxTrials) return absl::OkStatus();
  return FailedPrecondition(
      "lane ", lane, " of ", name(), ": got ", kMaxTrials,
      " episodes that ended before ", run.wanted,
      " actions, want one that does not; make noops smaller");
}

absl::StatusOr<TensorDict> NoopReset::SaveState() const {
  StateWriter state(kType, kStateVersion);
  state.Entry(envs_internal::kInnerState, inner().SaveState());
  state.List<int64_t>("seed", {static_cast<int64_t>(seed_)}, {1});
  state.List<int64_t>("resets", resets_, {lanes(), 1});
  state.List<int64_t>("actions", actions_, {lanes(), 1});
  return std::move(state).Finish();
}

absl::Status NoopReset::LoadState(const TensorDict& dict) {
  const Shape column = {lanes(), 1};
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(const auto seed,
                        state.List<int64_t>("seed", Shape({1})));
  RILL_ASSIGN_OR_RETURN(auto resets, state.List<int64_t>("resets", column));
  RILL_ASSIGN_OR_RETURN(auto actions, state.List<int64_t>("actions", column));
  RILL_RETURN_IF_ERROR(envs_internal::LoadInner(state, &inner()));
  seed_ = static_cast<uint64_t>(seed[0]);
  resets_ = std::move(resets);
  actions_ = std::move(actions);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeNoopReset(
    std::unique_ptr<Env> env, const NoopResetOptions& options) {
  if (env == nullptr) {
    return InvalidArgument(kMake, ": env: got null, want an environment");
  }
  if (options.noops < 0 || options.noops > (int64_t{1} << 30)) {
    return InvalidArgument(kMake, ": noops: got ", options.noops,
                           ", want [0, 2^30]");
  }
  if (env->spec().action.Find("action") == nullptr ||
      env->spec().action.leaves().size() != 1 ||
      !env->spec().own_episodes.empty()) {
    return InvalidArgument(
        kMake, ": env: got ", env->name(),
        ", want one with the leaf \"action\" alone, and no groups with "
        "episodes of their own");
  }
  if (!env->spec().legal_actions.empty()) {
    return InvalidArgument(kMake, ": env: got ", env->name(),
                           " with legal actions, want one without: the actions "
                           "that no one sees do not look at a mask");
  }
  return NoopReset::Create(std::move(env), options);
}

}  // namespace rill
