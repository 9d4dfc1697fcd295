// SPDX-License-Identifier: Apache-2.0
// SaveState and LoadState of TransformedEnv. Layout: `env/name`, `env/state`
// (where the environment can), `root`, and `transforms/<i>/name`,
// `transforms/<i>/state`.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/transformed_env.h"

namespace rill::collectors_internal {
namespace {

constexpr absl::string_view kCaller = "SyncCollector::LoadState";

std::string TransformKey(size_t i, absl::string_view what) {
  return absl::StrCat("transforms/", i, "/", what);
}

NonTensor JsonString(absl::string_view text) {
  return {absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"")};
}

absl::Status CheckName(const TensorDict& state, absl::string_view key,
                       absl::string_view name) {
  absl::StatusOr<NonTensor> found = state.GetNonTensor(key);
  const NonTensor want = JsonString(name);
  if (found.ok() && *found == want) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kCaller, ": \"", key, "\": got ",
                   found.ok() ? found->json : "none", ", want ", want.json,
                   "; load into a collector that was made the same way"));
}

absl::Status Misfit(absl::string_view what, const absl::Status& status) {
  return absl::FailedPreconditionError(
      absl::StrCat(kCaller, ": ", what, ": ", status.message()));
}

// A dictionary without leaves may have been lost in a file.
TensorDict FindState(const TensorDict& state, absl::string_view key) {
  const TensorDict* found = state.FindDict(key);
  return found == nullptr ? TensorDict() : *found;
}

}  // namespace

absl::StatusOr<TensorDict> TransformedEnv::SaveState(
    bool* episodes_continue) const {
  TensorDict state;
  RILL_RETURN_IF_ERROR(state.Set("env/name", JsonString(env_->name())));
  absl::StatusOr<TensorDict> env_state = env_->SaveState();
  *episodes_continue = !absl::IsUnimplemented(env_state.status());
  if (*episodes_continue) {
    RILL_RETURN_IF_ERROR(env_state.status());
    RILL_RETURN_IF_ERROR(state.Set("env/state", *std::move(env_state)));
  }
  RILL_ASSIGN_OR_RETURN(TensorDict root, root_.Clone());
  RILL_RETURN_IF_ERROR(state.Set("root", std::move(root)));
  for (size_t i = 0; i < transforms_->size(); ++i) {
    const auto& transform = (*transforms_)[i];
    RILL_RETURN_IF_ERROR(
        state.Set(TransformKey(i, "name"), JsonString(transform->name())));
    RILL_ASSIGN_OR_RETURN(TensorDict saved, transform->SaveState());
    RILL_RETURN_IF_ERROR(state.Set(TransformKey(i, "state"), std::move(saved)));
  }
  return state;
}

absl::Status TransformedEnv::CheckState(const TensorDict& state,
                                        bool episodes_continue) const {
  RILL_RETURN_IF_ERROR(CheckName(state, "env/name", env_->name()));
  if (episodes_continue && state.FindDict("env/state") == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(kCaller, ": \"env/state\": got none, want the state of ",
                     env_->name()));
  }
  for (size_t i = 0; i < transforms_->size(); ++i) {
    RILL_RETURN_IF_ERROR(
        CheckName(state, TransformKey(i, "name"), (*transforms_)[i]->name()));
  }
  if (state.Contains(TransformKey(transforms_->size(), "name"))) {
    return absl::FailedPreconditionError(absl::StrCat(
        kCaller, ": transforms: got more than ", transforms_->size(),
        ", want as many as this collector has"));
  }
  const TensorDict* root = state.FindDict("root");
  if (root == nullptr || !(root->batch_shape() == root_.batch_shape())) {
    return absl::FailedPreconditionError(
        absl::StrCat(kCaller, ": \"root\": got ",
                     root == nullptr ? "none" : root->batch_shape().ToString(),
                     ", want batch shape ", root_.batch_shape().ToString(),
                     " of this collector's lanes"));
  }
  const absl::Status layout = root_spec_.CheckLayout(kCaller, *root);
  return layout.ok() ? layout : Misfit("\"root\"", layout);
}

absl::Status TransformedEnv::LoadTransforms(const TensorDict& state) {
  std::vector<TensorDict> before;
  for (const auto& transform : *transforms_) {
    RILL_ASSIGN_OR_RETURN(TensorDict saved, transform->SaveState());
    before.push_back(std::move(saved));
  }
  for (size_t i = 0; i < transforms_->size(); ++i) {
    const auto& transform = (*transforms_)[i];
    const absl::Status status =
        transform->LoadState(FindState(state, TransformKey(i, "state")));
    if (status.ok()) continue;
    // A refused state left its transform as it was; those before it go back.
    for (size_t k = 0; k < i; ++k) {
      RILL_RETURN_IF_ERROR((*transforms_)[k]->LoadState(before[k]));
    }
    return Misfit(absl::StrCat("transforms[", i, "] (", transform->name(), ")"),
                  status);
  }
  return absl::OkStatus();
}

absl::Status TransformedEnv::LoadState(const TensorDict& state,
                                       bool episodes_continue) {
  RILL_RETURN_IF_ERROR(CheckState(state, episodes_continue));
  TensorDict env_before;
  if (episodes_continue) {
    absl::StatusOr<TensorDict> saved = env_->SaveState();
    if (!saved.ok()) return Misfit(env_->name(), saved.status());
    env_before = *std::move(saved);
    const absl::Status loaded = env_->LoadState(FindState(state, "env/state"));
    if (!loaded.ok()) return Misfit(env_->name(), loaded);
  }
  if (absl::Status status = LoadTransforms(state); !status.ok()) {
    if (episodes_continue) {
      RILL_RETURN_IF_ERROR(env_->LoadState(env_before));
    }
    return status;
  }
  return root_.CopyFrom(FindState(state, "root"));
}

}  // namespace rill::collectors_internal
