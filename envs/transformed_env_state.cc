// SPDX-License-Identifier: Apache-2.0
// TransformedEnv saves `env/name`, `env/state`, `transforms/<i>/name` and
// `transforms/<i>/state`. `root/<key>` has the leaves of the root that are kept
// and `done`; `stages/<i>/<key>` has kept leaves that later transforms replace.
// `own/<key>` has those of an environment on a device that are no transform's.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/envs/transformed_env.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill {
namespace {

constexpr absl::string_view kLoad = "TransformedEnv::LoadState";
constexpr absl::string_view kType = "TransformedEnv";
constexpr int64_t kStateVersion = 1;
constexpr absl::string_view kDoneKey = "root/done";

std::string TransformKey(size_t i, absl::string_view what) {
  return absl::StrCat("transforms/", i, "/", what);
}

// Names stand for the way the environment was made: a state fits no other.
absl::Status CheckName(absl::string_view caller, const TensorDict& state,
                       absl::string_view key, absl::string_view name) {
  absl::StatusOr<NonTensor> found = state.GetNonTensor(key);
  const NonTensor want = JsonString(name);
  if (found.ok() && *found == want) return absl::OkStatus();
  return FailedPrecondition(
      caller, ": \"", key, "\": got ", found.ok() ? found->json : "none",
      ", want ", want.json,
      "; load into an environment that was made the same way");
}

// A dictionary without leaves may have been lost in a file.
TensorDict FindState(const TensorDict& state, absl::string_view key) {
  const TensorDict* found = state.FindDict(key);
  return found == nullptr ? TensorDict() : *found;
}

std::string KeptKey(const envs_internal::TransformedSteps::Buffer& buffer) {
  if (buffer.is_own) return absl::StrCat("own/", buffer.key);
  return buffer.is_last
             ? absl::StrCat("root/", buffer.key)
             : absl::StrCat("stages/", buffer.saved_stage, "/", buffer.key);
}

// Whether a state has to have the buffer, or has it all the same.
bool IsIn(const TensorDict& state,
          const envs_internal::TransformedSteps::Buffer& buffer) {
  return buffer.is_kept &&
         (!buffer.is_own || state.Find(KeptKey(buffer)) != nullptr);
}

}  // namespace

absl::StatusOr<TensorDict> TransformedEnv::SaveTransforms() const {
  if (steps_.on_device != nullptr) {
    RILL_RETURN_IF_ERROR(ReadEnds(/*wants_all=*/true));
    RILL_RETURN_IF_ERROR(AwaitDevice());
  }
  StateWriter state(kType, kStateVersion);
  state.Entry<NonTensor>("env/name", JsonString(env_->name()));
  for (size_t i = 0; i < transforms_.size(); ++i) {
    state.Entry<NonTensor>(TransformKey(i, "name"),
                           JsonString(transforms_[i]->name()));
    // A copy: tensors that somebody else holds cannot be written in place.
    state.Entry(TransformKey(i, "state"),
                steps_.on_device == nullptr
                    ? states_[i].Clone()
                    : envs_internal::StateOn(Device::Cpu(), states_[i]));
  }
  for (const Steps::Buffer& buffer : steps_.buffers) {
    if (!buffer.is_kept) continue;
    state.Entry(KeptKey(buffer), buffer.tensor.is_host()
                                     ? buffer.tensor.Clone()
                                     : buffer.tensor.To(Device::Cpu()));
  }
  state.List<bool>(kDoneKey, done_, {env_->lanes(), 1});
  return std::move(state).Finish();
}

absl::StatusOr<TensorDict> TransformedEnv::SaveState() const {
  RILL_ASSIGN_OR_RETURN(TensorDict env_state,
                        CatchExceptions([&] { return env_->SaveState(); },
                                        env_->name(), "::SaveState"));
  RILL_ASSIGN_OR_RETURN(TensorDict state, SaveTransforms());
  RILL_RETURN_IF_ERROR(state.Set("env/state", std::move(env_state)));
  return state;
}

absl::Status TransformedEnv::CheckState(const TensorDict& state) const {
  RILL_ASSIGN_OR_RETURN(const StateReader reader,
                        StateReader::Open(kType, kStateVersion, state));
  RILL_RETURN_IF_ERROR(CheckName(kLoad, state, "env/name", env_->name()));
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckName(kLoad, state, TransformKey(i, "name"),
                                   transforms_[i]->name()));
    RILL_ASSIGN_OR_RETURN(const TensorDict initial,
                          transforms_[i]->InitialState(env_->lanes()));
    RILL_RETURN_IF_ERROR(CheckTransformState(
        absl::StrCat(kLoad, ": transforms[", i, "] (", transforms_[i]->name(),
                     ")"),
        initial, FindState(state, TransformKey(i, "state"))));
  }
  if (state.Contains(TransformKey(transforms_.size(), "name"))) {
    return reader.DoesNotFit(
        absl::StrCat("transforms: got more than ", transforms_.size(),
                     ", want as many as this environment has"));
  }
  const Shape lanes = {env_->lanes()};
  for (const Steps::Buffer& buffer : steps_.buffers) {
    if (!IsIn(state, buffer)) continue;
    RILL_RETURN_IF_ERROR(reader
                             .Leaf(KeptKey(buffer), buffer.spec.dtype,
                                   lanes.Concat(buffer.spec.shape))
                             .status());
  }
  return reader.Leaf(kDoneKey, DType::kBool, lanes.Concat({1})).status();
}

absl::StatusOr<TensorDict> TransformedEnv::Statistics() const {
  RILL_RETURN_IF_ERROR(AwaitDevice());
  TensorDict statistics;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    if (steps_.statistics[i].empty()) continue;
    RILL_RETURN_IF_ERROR(statistics.Set(TransformKey(i, "name"),
                                        JsonString(transforms_[i]->name())));
    TensorDict state;
    for (const std::string& key : steps_.statistics[i]) {
      RILL_ASSIGN_OR_RETURN(const Tensor leaf, states_[i].Get(key));
      RILL_ASSIGN_OR_RETURN(Tensor host, leaf.To(Device::Cpu()));
      RILL_RETURN_IF_ERROR(state.Set(key, std::move(host)));
    }
    RILL_RETURN_IF_ERROR(
        statistics.Set(TransformKey(i, "state"), std::move(state)));
  }
  return statistics;
}

absl::Status TransformedEnv::LoadStatistics(const TensorDict& statistics) {
  constexpr absl::string_view kCaller = "TransformedEnv::LoadStatistics";
  RILL_ASSIGN_OR_RETURN(const TensorDict own, Statistics());
  RILL_RETURN_IF_ERROR(CheckTransformState(kCaller, own, statistics));
  std::vector<TensorDict> states = states_;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    if (steps_.statistics[i].empty()) continue;
    RILL_RETURN_IF_ERROR(CheckName(kCaller, statistics, TransformKey(i, "name"),
                                   transforms_[i]->name()));
    for (const std::string& key : steps_.statistics[i]) {
      const Tensor& leaf =
          *statistics.Find(absl::StrCat(TransformKey(i, "state"), "/", key));
      RILL_ASSIGN_OR_RETURN(Tensor copy, leaf.Clone());
      RILL_RETURN_IF_ERROR(states[i].Set(key, std::move(copy)));
    }
    RILL_ASSIGN_OR_RETURN(states[i], Place(states[i]));
  }
  states_ = std::move(states);
  return absl::OkStatus();
}

absl::Status TransformedEnv::LoadTransforms(const TensorDict& state) {
  RILL_RETURN_IF_ERROR(CheckState(state));
  return AdoptTransforms(state);
}

// The caller's copies at the root are not touched, as step() is no part of a
// state.
absl::Status TransformedEnv::AdoptTransforms(const TensorDict& state) {
  if (steps_.on_device != nullptr) {
    // Those of the steps before, and with them what was wrong there.
    ReadEnds(/*wants_all=*/false).IgnoreError();
    RILL_RETURN_IF_ERROR(AwaitDevice());
  }
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(
        const TensorDict own,
        envs_internal::OwnState(FindState(state, TransformKey(i, "state"))));
    RILL_ASSIGN_OR_RETURN(states_[i], Place(own));
  }
  for (const Steps::Buffer& buffer : steps_.buffers) {
    if (!IsIn(state, buffer)) continue;
    RILL_RETURN_IF_ERROR(buffer.tensor.CopyFrom(*state.Find(KeptKey(buffer))));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor done, state.Find(kDoneKey)->Contiguous());
  std::memcpy(done_.data(), done.raw_data(), done_.size());
  return steps_.copies_to_host == nullptr
             ? absl::OkStatus()
             : steps_.copies_to_host->RootsToDevice();
}

absl::Status TransformedEnv::LoadState(const TensorDict& state) {
  RILL_RETURN_IF_ERROR(CheckState(state));
  if (state.FindDict("env/state") == nullptr) {
    return FailedPrecondition(
        kLoad, ": \"env/state\": got none, want the state of ", env_->name());
  }
  // The last that can refuse, and before anything of the transforms changes.
  const absl::Status loaded = CatchExceptions(
      [&] { return env_->LoadState(FindState(state, "env/state")); },
      env_->name(), "::LoadState");
  if (!loaded.ok()) {
    return FailedPrecondition(kLoad, ": ", env_->name(), ": ",
                              loaded.message());
  }
  return AdoptTransforms(state);
}

}  // namespace rill
