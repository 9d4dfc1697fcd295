// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/recall_env.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::ppo_recurrent {
namespace {

constexpr int64_t kQuestions = 2;
constexpr int64_t kLongestWait = 6;
// Two of the longest waits take 14 steps with their answers: some are cut off.
constexpr int64_t kMaxSteps = 12;

class Recall final : public Lane {
 public:
  absl::Status Bind(const TensorDict& row) {
    RILL_ASSIGN_OR_RETURN(action_, row.Flat<int64_t>("action"));
    RILL_ASSIGN_OR_RETURN(root_.observation, row.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(root_.mask, row.Flat<bool>("action_mask"));
    RILL_ASSIGN_OR_RETURN(next_.observation,
                          row.Flat<float>("next/observation"));
    RILL_ASSIGN_OR_RETURN(next_.mask, row.Flat<bool>("next/action_mask"));
    return absl::OkStatus();
  }

  absl::Status Reset(const Rng& rng, uint64_t episode) override {
    cue_ = rng.UniformInt(episode, 0, kRecallCues);
    for (int64_t i = 0; i < kQuestions; ++i) {
      waits_[i] = 1 + rng.UniformInt(episode, static_cast<uint32_t>(1 + i),
                                     kLongestWait);
    }
    asked_ = 0;
    wait_ = waits_[0];
    Show(root_);
    root_.observation[cue_] = 1;
    return absl::OkStatus();
  }

  absl::StatusOr<LaneStep> Step() override {
    LaneStep step;
    if (wait_ > 0) {
      --wait_;
    } else {
      step.reward = action_[0] == 1 + cue_ ? 1 : 0;
      ++asked_;
      step.terminated = asked_ == kQuestions;
      wait_ = step.terminated ? 1 : waits_[asked_];
    }
    Show(next_);
    return step;
  }

  absl::StatusOr<TensorDict> SaveState() const override {
    TensorDict state;
    RILL_ASSIGN_OR_RETURN(
        const Tensor numbers,
        Tensor::From<int64_t>({cue_, waits_[0], waits_[1], asked_, wait_},
                              {5}));
    RILL_RETURN_IF_ERROR(state.Set("numbers", numbers));
    return state;
  }
  absl::Status LoadState(const TensorDict& state) override {
    RILL_ASSIGN_OR_RETURN(const auto numbers, state.Flat<int64_t>("numbers"));
    // Each in its range; a state of zeros is of an episode that has not begun.
    constexpr int64_t kMax[] = {kRecallCues - 1, kLongestWait, kLongestWait,
                                kQuestions, kLongestWait};
    if (numbers.size() != 5) {
      return FailedPrecondition("Recall::LoadState: \"numbers\": got ",
                                numbers.size(), " numbers, want 5");
    }
    for (size_t i = 0; i < 5; ++i) {
      if (numbers[i] < 0 || numbers[i] > kMax[i]) {
        return FailedPrecondition("Recall::LoadState: \"numbers\": got ",
                                  numbers[i], " at ", i, ", want 0 to ",
                                  kMax[i]);
      }
    }
    cue_ = numbers[0];
    waits_[0] = numbers[1];
    waits_[1] = numbers[2];
    asked_ = numbers[3];
    wait_ = numbers[4];
    return absl::OkStatus();
  }

 private:
  struct State {
    absl::Span<float> observation;
    absl::Span<bool> mask;
  };

  void Show(const State& to) const {
    const bool is_asked = wait_ == 0;
    std::fill(to.observation.begin(), to.observation.end(), 0.0f);
    to.observation[kRecallCues] = is_asked ? 1 : 0;
    std::fill(to.mask.begin(), to.mask.end(), is_asked);
    to.mask[0] = !is_asked;
  }

  absl::Span<const int64_t> action_;
  State root_, next_;
  int64_t cue_ = 0;
  int64_t waits_[kQuestions] = {};
  int64_t asked_ = 0;  // Questions so far.
  int64_t wait_ = 0;   // Steps to the next; 0: it is asked for now.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeRecall(const RecallOptions& options) {
  EnvSpec spec = {.name = "Recall", .lanes = options.lanes};
  RILL_RETURN_IF_ERROR(spec.observation.Set(
      "observation",
      LeafSpec::Bounded(DType::kFloat32, {kRecallCues + 1}, 0, 1)));
  RILL_RETURN_IF_ERROR(
      spec.observation.Set("action_mask", LeafSpec::Binary({1 + kRecallCues})));
  RILL_RETURN_IF_ERROR(
      spec.action.Set("action", LeafSpec::Categorical(1 + kRecallCues)));
  spec.legal_actions = {{.action = "action", .mask = "action_mask"}};
  const auto make =
      [](int64_t,
         const TensorDict& row) -> absl::StatusOr<std::unique_ptr<Lane>> {
    auto lane = std::make_unique<Recall>();
    RILL_RETURN_IF_ERROR(lane->Bind(row));
    return lane;
  };
  return MakeLaneEnv(std::move(spec), make,
                     {.max_episode_steps = kMaxSteps, .seed = options.seed});
}

}  // namespace rill::ppo_recurrent
