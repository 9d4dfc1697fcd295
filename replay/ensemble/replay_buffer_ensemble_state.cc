// SPDX-License-Identifier: Apache-2.0
// The ways back into a ReplayBufferEnsemble: priorities, and its state.
// A state has `shares` and `carry` float64 and `items` int64, one a member;
// `batches_and_seed` int64 [2]; `transforms`; `options`, the text of each.
#include "rill/replay/ensemble/replay_buffer_ensemble_state.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"
#include "rill/replay/ensemble/part_merge.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using replay_internal::kBufferIdsKey;
using replay_internal::kGenerationKey;
using replay_internal::kIndexKey;

constexpr absl::string_view kUpdate = "ReplayBufferEnsemble::UpdatePriorities";
constexpr absl::string_view kLoad = "ReplayBufferEnsemble::LoadState";
constexpr absl::string_view kType = "ReplayBufferEnsemble";
constexpr int64_t kStateVersion = 1;
constexpr absl::string_view kOptionsKey = "options";

// None where the state is from before they were saved.
absl::StatusOr<Manifest> OptionsOf(const StateReader& saved) {
  Manifest manifest;
  if (!saved.dict().Contains(kOptionsKey)) return manifest;
  RILL_ASSIGN_OR_RETURN(const TensorDict* const texts, saved.Dict(kOptionsKey));
  OptionValues values;
  for (const std::string& name : texts->Keys()) {
    const std::string key = absl::StrCat(kOptionsKey, "/", name);
    std::string text;
    if (saved.version() == 0) {
      RILL_ASSIGN_OR_RETURN(const auto bytes, saved.List<uint8_t>(key));
      text.assign(bytes.begin(), bytes.end());
    } else {
      RILL_ASSIGN_OR_RETURN(text, saved.Text(key));
    }
    values.Choice(name, text);
  }
  replay_internal::SaveOptions(values, &manifest);
  return manifest;
}

// The rows of a batch that are one member's.
struct Routed {
  std::vector<int64_t> index;
  std::vector<int64_t> generations;
  std::vector<float> priorities;
};

// The rows of a batch by member. All of it is checked before a member is
// updated.
absl::StatusOr<std::vector<Routed>> Route(const TensorDict& batch,
                                          absl::Span<const float> priorities,
                                          int64_t members) {
  RILL_ASSIGN_OR_RETURN(
      const Tensor ids_leaf,
      replay_internal::NumbersOf(kUpdate, batch, kBufferIdsKey));
  RILL_ASSIGN_OR_RETURN(const auto ids, ids_leaf.Flat<int64_t>());
  RILL_ASSIGN_OR_RETURN(const std::vector<Draw> draws,
                        replay_internal::DrawsOf(kUpdate, batch));
  const size_t rows = ids.size();
  if (draws.size() != rows ||
      (priorities.size() != 1 && priorities.size() != rows)) {
    return InvalidArgument(kUpdate, ": got ", rows, " of \"", kBufferIdsKey,
                           "\", ", draws.size(), " of \"", kIndexKey, "\" and ",
                           priorities.size(),
                           " priorities, want as many of each, or 1 priority");
  }
  std::vector<Routed> routed(static_cast<size_t>(members));
  for (size_t i = 0; i < rows; ++i) {
    if (ids[i] < 0 || ids[i] >= members) {
      return InvalidArgument(kUpdate, ": \"", kBufferIdsKey, "\": got ", ids[i],
                             ", want [0, ", members, ")");
    }
    Routed& own = routed[static_cast<size_t>(ids[i])];
    own.index.push_back(draws[i].slot);
    own.generations.push_back(draws[i].generation);
    own.priorities.push_back(priorities[priorities.size() == 1 ? 0 : i]);
  }
  return routed;
}

absl::Status SetNumbers(absl::string_view key,
                        absl::Span<const int64_t> numbers, TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(
      Tensor tensor,
      Tensor::From<int64_t>(numbers, {static_cast<int64_t>(numbers.size())}));
  return dict->Set(key, std::move(tensor));
}

}  // namespace

absl::Status ReplayBufferEnsemble::UpdatePriorities(
    const TensorDict& batch, absl::Span<const float> priorities) {
  RILL_ASSIGN_OR_RETURN(const std::vector<Routed> routed,
                        Route(batch, priorities, num_members()));
  for (size_t i = 0; i < routed.size(); ++i) {
    const Routed& own = routed[i];
    if (own.index.empty()) continue;
    TensorDict rows({static_cast<int64_t>(own.index.size())});
    RILL_RETURN_IF_ERROR(SetNumbers(kIndexKey, own.index, &rows));
    RILL_RETURN_IF_ERROR(SetNumbers(kGenerationKey, own.generations, &rows));
    RILL_RETURN_IF_ERROR(
        state_->members[i].buffer->UpdatePriorities(rows, own.priorities))
        << kUpdate << ": " << state_->Label(i);
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> ReplayBufferEnsemble::SaveState() const {
  const State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  const Shape members = {num_members()};
  StateWriter saved(kType, kStateVersion);
  saved.List<double>("shares", state.shares, members);
  saved.List<double>("carry", state.carry, members);
  saved.List<int64_t>("items", state.items, members);
  saved.List<int64_t>("batches_and_seed",
                      {state.batches, static_cast<int64_t>(state.seed)}, {2});
  saved.Entry<TensorDict>("transforms", state.transform_state);
  const OptionValues options = state.ComparedOptions();
  for (const OptionValues::Value& value : options.values()) {
    saved.Entry<NonTensor>(absl::StrCat(kOptionsKey, "/", value.name),
                           JsonString(value.text));
  }
  return std::move(saved).Finish();
}

OptionValues ReplayBufferEnsemble::State::ComparedOptions() const {
  OptionValues values;
  for (size_t i = 0; i < members.size(); ++i) {
    values.Double(absl::StrCat("members.", i, ".share"), members[i].share);
  }
  values.Bool("stacked", stacked).Int("buffers_sampled", buffers_sampled);
  for (size_t i = 0; i < transforms->transforms().size(); ++i) {
    const BatchTransform& transform = *transforms->transforms()[i];
    values.Part(absl::StrCat("transforms.", i), transform.name(),
                transform.option_values());
  }
  return values;
}

absl::Status ReplayBufferEnsemble::LoadState(
    const TensorDict& dict, const ReplayBuffer::OpenOptions& options) {
  State& state = *state_;
  const Shape members = {num_members()};
  RILL_ASSIGN_OR_RETURN(const StateReader saved,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(auto shares, saved.List<double>("shares", members));
  RILL_ASSIGN_OR_RETURN(auto carry, saved.List<double>("carry", members));
  RILL_ASSIGN_OR_RETURN(auto items, saved.List<int64_t>("items", members));
  RILL_ASSIGN_OR_RETURN(const auto numbers,
                        saved.List<int64_t>("batches_and_seed", Shape({2})));
  RILL_ASSIGN_OR_RETURN(const TensorDict* const transforms,
                        saved.Dict("transforms"));
  const auto normalised = state.Normalised("\"shares\"", shares);
  if (!normalised.ok()) return saved.DoesNotFit(normalised.status().message());
  shares = *normalised;
  for (const double owed : carry) {
    // More than an item each way none ever is.
    if (std::abs(owed) <= static_cast<double>(num_members())) continue;
    return saved.DoesNotFit(absl::StrCat("\"carry\": got ", owed,
                                         ", want at most ", num_members(),
                                         " either way"));
  }
  if (numbers[0] < 0) {
    return saved.DoesNotFit(
        absl::StrCat("batches: got ", numbers[0], ", want >= 0"));
  }
  absl::MutexLock lock(&state.mutex);
  RILL_ASSIGN_OR_RETURN(const Manifest before, OptionsOf(saved));
  const OptionValues values = state.ComparedOptions();
  RILL_ASSIGN_OR_RETURN(const std::vector<OptionChange> changes,
                        replay_internal::CompareOptions(before, values));
  if (options.changed_options != nullptr) *options.changed_options = changes;
  RILL_RETURN_IF_ERROR(replay_internal::CheckChanges(kLoad, changes, values,
                                                     options.accept_options));
  const bool has_other_shares =
      std::any_of(changes.begin(), changes.end(), [](const auto& change) {
        return absl::StartsWith(change.option, "members.");
      });
  // Shares that SetShares has set are state. Where those of the options
  // changed, these count from here on.
  if (has_other_shares) {
    std::vector<double> given;
    for (const Member& member : state.members) given.push_back(member.share);
    RILL_ASSIGN_OR_RETURN(shares, state.Normalised(kLoad, given));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict initial,
                        state.transforms->InitialState());
  RILL_RETURN_IF_ERROR(CheckTransformState("transforms", initial, *transforms))
      << kLoad;
  state.transform_state = *transforms;
  state.shares = std::move(shares);
  state.carry = std::move(carry);
  state.items = std::move(items);
  state.batches = numbers[0];
  state.seed = static_cast<uint64_t>(numbers[1]);
  // Items that were held belong to the run before the load.
  for (State::Held& held : state.held) held.items = 0;
  return absl::OkStatus();
}

}  // namespace rill
