// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/transformed_env.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/tensordict/tensor.h"

// States. A call of the transforms works on next_states_, which begin with the
// tensors of states_, and CommitStates swaps the two when the whole call has
// succeeded. A call that fails so leaves states_ as they were. Dictionaries are
// swapped and refilled, not made: steps allocate nothing.

namespace rill {
namespace {

constexpr absl::string_view kCreate = "TransformedEnv::Create";

// The lanes with mask[lane] != 0. Few are, and which is not to be predicted: no
// branch. `room` has an entry a lane.
absl::Span<const int64_t> FindLanes(absl::Span<const uint8_t> mask,
                                    std::vector<int64_t>& room) {
  size_t count = 0;
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    room[count] = static_cast<int64_t>(lane);
    count += mask[lane] != 0 ? 1 : 0;
  }
  return absl::MakeConstSpan(room).first(count);
}

// A width that is known makes a copy of one or two instructions.
template <int64_t kWidth>
void CopyRowsOf(absl::Span<const int64_t> lanes, const std::byte* from,
                std::byte* to) {
  for (const int64_t lane : lanes) {
    std::memcpy(to + lane * kWidth, from + lane * kWidth, kWidth);
  }
}

// Rows of `width` bytes.
void CopyLanes(absl::Span<const int64_t> lanes, int64_t width,
               const std::byte* from, std::byte* to) {
  switch (width) {
    case 1:
      return CopyRowsOf<1>(lanes, from, to);
    case 4:
      return CopyRowsOf<4>(lanes, from, to);
    case 8:
      return CopyRowsOf<8>(lanes, from, to);
    case 16:
      return CopyRowsOf<16>(lanes, from, to);
    default:
      break;
  }
  for (const int64_t lane : lanes) {
    std::memcpy(to + lane * width, from + lane * width,
                static_cast<size_t>(width));
  }
}

// Found once: a walk over a dictionary builds its keys.
std::vector<std::string> KeysOf(const TensorDict& state) {
  std::vector<std::string> keys;
  state.ForEachLeaf([&keys](absl::string_view key, const Tensor&) {
    keys.emplace_back(key);
  });
  return keys;
}

// Shares the tensors of `from` with `to` and keeps its dictionary, so that
// nothing is allocated. False where `keys` are not those of both.
bool ShareTensors(absl::Span<const std::string> keys, const TensorDict& from,
                  TensorDict* to) {
  return absl::c_all_of(keys, [&](const std::string& key) {
    const Tensor* const tensor = from.Find(key);
    return tensor != nullptr && to->Set(key, *tensor).ok();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransformedEnv>> TransformedEnv::Create(
    std::unique_ptr<Env> env, Transforms transforms) {
  if (env == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCreate, ": env: got null, want an environment"));
  }
  std::vector<TensorDict> states;
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (transforms[i] == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          kCreate, ": transforms[", i, "]: got null, want a transform"));
    }
    RILL_ASSIGN_OR_RETURN(states.emplace_back(),
                          transforms[i]->InitialState(env->lanes()));
  }
  if (!transforms.empty() && !env->spec().device.is_cpu()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kCreate, ": env: got ", env->name(), " on ",
        env->spec().device.ToString(),
        ", want one in host memory; transform its batches instead"));
  }
  RILL_ASSIGN_OR_RETURN(Steps steps, envs_internal::PlanTransformedSteps(
                                         kCreate, *env, transforms));
  return absl::WrapUnique(
      new TransformedEnv(std::move(env), std::move(transforms),
                         std::move(steps), std::move(states)));
}

TransformedEnv::TransformedEnv(std::unique_ptr<Env> env, Transforms transforms,
                               Steps steps, std::vector<TensorDict> states)
    : Env(std::move(steps.spec), std::move(steps.step)),
      env_(std::move(env)),
      transforms_(std::move(transforms)),
      steps_(std::move(steps)),
      done_(static_cast<size_t>(env_->lanes()), 0),
      mask_(done_.size(), 0),
      lanes_found_(done_.size(), 0),
      states_(std::move(states)),
      next_states_(states_) {
  for (const TensorDict& state : states_) state_keys_.push_back(KeysOf(state));
}

absl::Status TransformedEnv::Annotate(size_t i,
                                      const absl::Status& status) const {
  return envs_internal::AnnotateTransform(status, *env_, i, *transforms_[i]);
}

void TransformedEnv::CopyRows(const Steps::Link& link) {
  const Steps::Buffer& to = steps_.buffers[link.to];
  std::memcpy(to.tensor.raw_data(), steps_.buffers[link.from].tensor.raw_data(),
              static_cast<size_t>(to.width * env_->lanes()));
}

// Copies a dictionary whole where its keys differ from those of InitialState: a
// loaded state may lack a dictionary without leaves.
void TransformedEnv::StartStates() {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!ShareTensors(state_keys_[i], states_[i], &next_states_[i])) {
      next_states_[i] = states_[i];
    }
  }
}

void TransformedEnv::CommitStates() {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].empty()) std::swap(states_[i], next_states_[i]);
  }
}

absl::Status TransformedEnv::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(env_->Seed(seed));
  StartStates();
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(
        Annotate(i, transforms_[i]->OnSeed(seed, &next_states_[i])));
  }
  CommitStates();
  return absl::OkStatus();
}

absl::Status TransformedEnv::Reset(const ResetMask& mask) {
  if (transforms_.empty()) return env_->Reset(mask);
  RILL_RETURN_IF_ERROR(CheckMask("TransformedEnv::Reset", spec(), mask));
  RILL_RETURN_IF_ERROR(env_->Reset(mask));
  StartStates();
  // Transforms run from the environment outwards. Before each, the leaves of
  // the root that it replaces get the rows that come before it.
  absl::Span<const int64_t> lanes = FindLanes(mask.lanes, lanes_found_);
  for (size_t i = 0; i < transforms_.size(); ++i) {
    for (const Steps::Link& link : steps_.copies[i]) {
      const Steps::Buffer& to = steps_.buffers[link.to];
      if (!to.is_kept) continue;
      CopyLanes(lanes, to.width, steps_.buffers[link.from].tensor.raw_data(),
                to.tensor.raw_data());
    }
    RILL_RETURN_IF_ERROR(
        Annotate(i, transforms_[i]->OnReset(mask.lanes, steps_.leaves[i],
                                            &next_states_[i])));
  }
  for (const int64_t lane : lanes) done_[lane] = 0;
  // A group that began on its own changed rows of the root too. No transform
  // was reset for it; the caller's copies of these lanes are renewed all the
  // same.
  if (!mask.groups.empty()) {
    std::copy(mask.lanes.begin(), mask.lanes.end(), mask_.begin());
    for (size_t i = 0; i < mask.groups.size(); ++i) {
      mask_[i % mask_.size()] |= mask.groups[i];
    }
    lanes = FindLanes(mask_, lanes_found_);
  }
  for (const Steps::Buffer& buffer : steps_.buffers) {
    if (!buffer.is_last || !buffer.is_kept) continue;
    CopyLanes(lanes, buffer.width, buffer.tensor.raw_data(),
              buffer.outer.raw_data());
  }
  CommitStates();
  return absl::OkStatus();
}

// Checks what the environment cannot see: an action that it does not get, and
// an episode that a transform has ended. A wrong action has precedence.
absl::Status TransformedEnv::CheckStep() const {
  constexpr absl::string_view kCaller = "TransformedEnv::BeginStep";
  const void* done = std::memchr(done_.data(), 1, done_.size());
  if (done == nullptr && !steps_.replaces_action) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(CheckActions(kCaller, spec(), step()));
  if (done == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      kCaller, ": lane ", static_cast<const uint8_t*>(done) - done_.data(),
      " of ", env_->name(), " is done; reset it first"));
}

absl::Status TransformedEnv::BeginStep() {
  if (transforms_.empty()) return env_->BeginStep();
  RILL_RETURN_IF_ERROR(CheckStep());
  StartStates();
  // An action comes from the caller, so the last transform is first.
  for (size_t i = transforms_.size(); i-- > 0;) {
    RILL_RETURN_IF_ERROR(Annotate(
        i, transforms_[i]->OnAction(steps_.leaves[i], &next_states_[i])));
  }
  failure_ = env_->BeginStep();
  // A refusal moved no lane and ends the call. A simulator that failed has
  // moved the others: the transforms must see the step, and EndStep returns the
  // error behind them.
  return envs_internal::IsRefusal(failure_) ? failure_ : absl::OkStatus();
}

absl::Status TransformedEnv::EndStep() {
  if (transforms_.empty()) return env_->EndStep();
  if (failure_.ok()) failure_ = env_->EndStep();
  for (size_t i = 0; i < transforms_.size(); ++i) {
    for (const Steps::Link& link : steps_.copies[i]) {
      if (!steps_.buffers[link.to].is_kept) CopyRows(link);
    }
    RILL_RETURN_IF_ERROR(Annotate(
        i, transforms_[i]->OnStep(steps_.leaves[i], &next_states_[i])));
  }
  // The transforms' own root for the next step. The caller carries the leaves
  // of step() itself, and has done so or not when that step begins.
  for (const Steps::Link& link : steps_.carried) CopyRows(link);
  // Behind the last transform: one of them may have ended the episode, which
  // the environment does not know.
  std::memcpy(done_.data(), steps_.buffers[steps_.done].tensor.raw_data(),
              done_.size());
  CommitStates();
  return failure_;
}

}  // namespace rill
