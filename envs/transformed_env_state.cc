// SPDX-License-Identifier: Apache-2.0
// TransformedEnv saves `env/name`, `env/state`, `transforms/<i>/name` and
// `transforms/<i>/state`. `root/<key>` has the leaves of the root that are kept
// and `done`; `stages/<i>/<key>` has kept leaves that later transforms replace.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/envs/transformed_env.h"
#include "rill/transforms/batch_transform.h"

namespace rill {
namespace {

constexpr absl::string_view kLoad = "TransformedEnv::LoadState";
constexpr absl::string_view kDoneKey = "root/done";

std::string TransformKey(size_t i, absl::string_view what) {
  return absl::StrCat("transforms/", i, "/", what);
}

NonTensor JsonString(absl::string_view text) {
  return {absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"")};
}

// Names stand for the way the environment was made: a state fits no other.
absl::Status CheckName(const TensorDict& state, absl::string_view key,
                       absl::string_view name) {
  absl::StatusOr<NonTensor> found = state.GetNonTensor(key);
  const NonTensor want = JsonString(name);
  if (found.ok() && *found == want) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kLoad, ": \"", key, "\": got ",
                   found.ok() ? found->json : "none", ", want ", want.json,
                   "; load into an environment that was made the same way"));
}

// A dictionary without leaves may have been lost in a file.
TensorDict FindState(const TensorDict& state, absl::string_view key) {
  const TensorDict* found = state.FindDict(key);
  return found == nullptr ? TensorDict() : *found;
}

absl::Status CheckRows(const TensorDict& state, absl::string_view key,
                       DType dtype, const Shape& shape) {
  const Tensor* found = state.Find(key);
  if (found != nullptr && found->dtype() == dtype && found->shape() == shape) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      kLoad, ": \"", key, "\": got ",
      found == nullptr
          ? "none"
          : absl::StrCat(DTypeName(found->dtype()), found->shape().ToString()),
      ", want ", DTypeName(dtype), shape.ToString()));
}

std::string KeptKey(const envs_internal::TransformedSteps::Buffer& buffer) {
  return buffer.is_last
             ? absl::StrCat("root/", buffer.key)
             : absl::StrCat("stages/", buffer.stage, "/", buffer.key);
}

}  // namespace

absl::StatusOr<TensorDict> envs_internal::OwnState(const TensorDict& state) {
  return state.Apply(
      state.batch_shape(),
      [](absl::string_view, const Tensor& leaf) { return leaf.Clone(); });
}

absl::StatusOr<TensorDict> TransformedEnv::SaveTransforms() const {
  TensorDict state;
  RILL_RETURN_IF_ERROR(state.Set("env/name", JsonString(env_->name())));
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(
        state.Set(TransformKey(i, "name"), JsonString(transforms_[i]->name())));
    // A copy: tensors that somebody else holds cannot be written in place.
    RILL_ASSIGN_OR_RETURN(TensorDict copy, states()[i].Clone());
    RILL_RETURN_IF_ERROR(state.Set(TransformKey(i, "state"), std::move(copy)));
  }
  for (const Steps::Buffer& buffer : steps_.buffers) {
    if (!buffer.is_kept) continue;
    RILL_ASSIGN_OR_RETURN(Tensor rows, buffer.tensor.Clone());
    RILL_RETURN_IF_ERROR(state.Set(KeptKey(buffer), std::move(rows)));
  }
  RILL_ASSIGN_OR_RETURN(Tensor done,
                        Tensor::Zeros(DType::kBool, {env_->lanes(), 1}));
  std::memcpy(done.raw_data(), done_.data(), done_.size());
  RILL_RETURN_IF_ERROR(state.Set(kDoneKey, std::move(done)));
  return state;
}

absl::StatusOr<TensorDict> TransformedEnv::SaveState() const {
  RILL_ASSIGN_OR_RETURN(TensorDict env_state, env_->SaveState());
  RILL_ASSIGN_OR_RETURN(TensorDict state, SaveTransforms());
  RILL_RETURN_IF_ERROR(state.Set("env/state", std::move(env_state)));
  return state;
}

absl::Status TransformedEnv::CheckState(const TensorDict& state) const {
  RILL_RETURN_IF_ERROR(CheckName(state, "env/name", env_->name()));
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(
        CheckName(state, TransformKey(i, "name"), transforms_[i]->name()));
    RILL_ASSIGN_OR_RETURN(const TensorDict initial,
                          transforms_[i]->InitialState(env_->lanes()));
    RILL_RETURN_IF_ERROR(CheckTransformState(
        absl::StrCat(kLoad, ": transforms[", i, "] (", transforms_[i]->name(),
                     ")"),
        initial, FindState(state, TransformKey(i, "state"))));
  }
  if (state.Contains(TransformKey(transforms_.size(), "name"))) {
    return absl::FailedPreconditionError(
        absl::StrCat(kLoad, ": transforms: got more than ", transforms_.size(),
                     ", want as many as this environment has"));
  }
  const Shape lanes = {env_->lanes()};
  for (const Steps::Buffer& buffer : steps_.buffers) {
    if (!buffer.is_kept) continue;
    RILL_RETURN_IF_ERROR(CheckRows(state, KeptKey(buffer), buffer.spec.dtype,
                                   lanes.Concat(buffer.spec.shape)));
  }
  return CheckRows(state, kDoneKey, DType::kBool, lanes.Concat({1}));
}

absl::Status TransformedEnv::LoadTransforms(const TensorDict& state) {
  RILL_RETURN_IF_ERROR(CheckState(state));
  return AdoptTransforms(state);
}

// The caller's copies at the root are not touched, as step() is no part of a
// state.
absl::Status TransformedEnv::AdoptTransforms(const TensorDict& state) {
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(states()[i], envs_internal::OwnState(FindState(
                                           state, TransformKey(i, "state"))));
  }
  for (const Steps::Buffer& buffer : steps_.buffers) {
    if (!buffer.is_kept) continue;
    RILL_RETURN_IF_ERROR(buffer.tensor.CopyFrom(*state.Find(KeptKey(buffer))));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor done, state.Find(kDoneKey)->Contiguous());
  std::memcpy(done_.data(), done.raw_data(), done_.size());
  return absl::OkStatus();
}

absl::Status TransformedEnv::LoadState(const TensorDict& state) {
  RILL_RETURN_IF_ERROR(CheckState(state));
  if (state.FindDict("env/state") == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        kLoad, ": \"env/state\": got none, want the state of ", env_->name()));
  }
  // The last that can refuse, and before anything of the transforms changes.
  const absl::Status loaded = env_->LoadState(FindState(state, "env/state"));
  if (!loaded.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(kLoad, ": ", env_->name(), ": ", loaded.message()));
  }
  return AdoptTransforms(state);
}

}  // namespace rill
