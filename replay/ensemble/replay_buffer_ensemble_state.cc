// SPDX-License-Identifier: Apache-2.0
// The ways back into a ReplayBufferEnsemble: priorities, and its state.
#include "rill/replay/ensemble/replay_buffer_ensemble_state.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/formats/manifest.h"
#include "rill/replay/ensemble/part_merge.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using replay_internal::kBufferIdsKey;
using replay_internal::kGenerationKey;
using replay_internal::kIndexKey;

constexpr absl::string_view kUpdate = "ReplayBufferEnsemble::UpdatePriorities";
constexpr absl::string_view kLoad = "ReplayBufferEnsemble::LoadState";
constexpr absl::string_view kOptionsKey = "options";

// A leaf as numbers in host memory, whatever its shape and place.
template <typename T>
absl::StatusOr<std::vector<T>> NumbersOf(absl::string_view caller,
                                         const TensorDict& dict,
                                         absl::string_view key) {
  absl::StatusOr<Tensor> leaf = dict.Get(key);
  if (leaf.ok()) leaf = leaf->To(Device::Cpu());
  if (leaf.ok()) leaf = leaf->Contiguous();
  RILL_RETURN_IF_ERROR(leaf.status()) << caller << ": \"" << key << "\"";
  const auto numbers = leaf->Flat<T>();
  RILL_RETURN_IF_ERROR(numbers.status()) << caller << ": \"" << key << "\"";
  return std::vector<T>(numbers->begin(), numbers->end());
}

// The options of a state, each a text.
TensorDict TextsAsDict(const OptionValues& values) {
  TensorDict texts;
  for (const OptionValues::Value& value : values.values()) {
    const auto size = static_cast<int64_t>(value.text.size());
    const std::vector<uint8_t> bytes(value.text.begin(), value.text.end());
    // Names are keys, and texts are not empty.
    texts.Set(value.name, *Tensor::From<uint8_t>(bytes, Shape({size})))
        .IgnoreError();
  }
  return texts;
}

// None where the state is from before they were saved.
absl::StatusOr<Manifest> OptionsOf(const TensorDict& saved) {
  Manifest manifest;
  const TensorDict* const texts = saved.FindDict(kOptionsKey);
  if (texts == nullptr) return manifest;
  OptionValues values;
  for (const std::string& name : texts->Keys()) {
    RILL_ASSIGN_OR_RETURN(const auto bytes,
                          NumbersOf<uint8_t>(kLoad, *texts, name));
    values.Choice(name, std::string(bytes.begin(), bytes.end()));
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
  RILL_ASSIGN_OR_RETURN(const auto ids,
                        NumbersOf<int64_t>(kUpdate, batch, kBufferIdsKey));
  RILL_ASSIGN_OR_RETURN(const auto index,
                        NumbersOf<int64_t>(kUpdate, batch, kIndexKey));
  RILL_ASSIGN_OR_RETURN(const auto generations,
                        NumbersOf<int64_t>(kUpdate, batch, kGenerationKey));
  const size_t rows = ids.size();
  if (index.size() != rows || generations.size() != rows ||
      (priorities.size() != 1 && priorities.size() != rows)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kUpdate, ": got ", rows, " of \"", kBufferIdsKey, "\", ", index.size(),
        " of \"", kIndexKey, "\", ", generations.size(), " of \"",
        kGenerationKey, "\" and ", priorities.size(),
        " priorities, want as many of each, or 1 priority"));
  }
  std::vector<Routed> routed(static_cast<size_t>(members));
  for (size_t i = 0; i < rows; ++i) {
    if (ids[i] < 0 || ids[i] >= members) {
      return absl::InvalidArgumentError(
          absl::StrCat(kUpdate, ": \"", kBufferIdsKey, "\": got ", ids[i],
                       ", want [0, ", members, ")"));
    }
    Routed& own = routed[static_cast<size_t>(ids[i])];
    own.index.push_back(index[i]);
    own.generations.push_back(generations[i]);
    own.priorities.push_back(priorities[priorities.size() == 1 ? 0 : i]);
  }
  return routed;
}

template <typename T>
absl::Status SetNumbers(absl::string_view key, absl::Span<const T> numbers,
                        TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(
      Tensor tensor,
      Tensor::From<T>(numbers, {static_cast<int64_t>(numbers.size())}));
  return dict->Set(key, std::move(tensor));
}

absl::Status BadState(absl::string_view what, const absl::AlphaNum& got,
                      const absl::AlphaNum& want) {
  return absl::InvalidArgumentError(
      absl::StrCat(kLoad, ": \"", what, "\": got ", got, ", want ", want));
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
    RILL_RETURN_IF_ERROR(SetNumbers<int64_t>(kIndexKey, own.index, &rows));
    RILL_RETURN_IF_ERROR(
        SetNumbers<int64_t>(kGenerationKey, own.generations, &rows));
    RILL_RETURN_IF_ERROR(
        state_->members[i].buffer->UpdatePriorities(rows, own.priorities))
        << kUpdate << ": " << state_->Label(i);
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> ReplayBufferEnsemble::SaveState() const {
  const State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  TensorDict saved;
  RILL_RETURN_IF_ERROR(SetNumbers<double>("shares", state.shares, &saved));
  RILL_RETURN_IF_ERROR(SetNumbers<double>("carry", state.carry, &saved));
  RILL_RETURN_IF_ERROR(SetNumbers<int64_t>("items", state.items, &saved));
  RILL_RETURN_IF_ERROR(SetNumbers<int64_t>(
      "batches_and_seed", {state.batches, static_cast<int64_t>(state.seed)},
      &saved));
  RILL_RETURN_IF_ERROR(saved.Set("transforms", state.transform_state));
  RILL_RETURN_IF_ERROR(saved.Set(std::string(kOptionsKey),
                                 TextsAsDict(state.ComparedOptions())));
  return saved;
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
    const TensorDict& saved, const ReplayBuffer::OpenOptions& options) {
  State& state = *state_;
  const size_t n = state.members.size();
  RILL_ASSIGN_OR_RETURN(auto shares, NumbersOf<double>(kLoad, saved, "shares"));
  RILL_ASSIGN_OR_RETURN(shares, state.Normalised(kLoad, shares));
  RILL_ASSIGN_OR_RETURN(auto carry, NumbersOf<double>(kLoad, saved, "carry"));
  RILL_ASSIGN_OR_RETURN(auto items, NumbersOf<int64_t>(kLoad, saved, "items"));
  RILL_ASSIGN_OR_RETURN(const auto numbers,
                        NumbersOf<int64_t>(kLoad, saved, "batches_and_seed"));
  RILL_ASSIGN_OR_RETURN(const TensorDict transforms,
                        saved.GetDict("transforms"));
  if (carry.size() != n || items.size() != n) {
    return BadState("carry", absl::StrCat(carry.size(), " and ", items.size()),
                    absl::StrCat("one a member, ", n, ", and as many items"));
  }
  for (const double owed : carry) {
    // More than an item each way none ever is.
    if (std::abs(owed) <= static_cast<double>(n)) continue;
    return BadState("carry", owed, absl::StrCat("at most ", n, " either way"));
  }
  if (numbers.size() != 2 || numbers[0] < 0) {
    return BadState("batches_and_seed",
                    saved.Find("batches_and_seed")->DebugString(),
                    "two, the first >= 0");
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
  RILL_RETURN_IF_ERROR(CheckTransformState("transforms", initial, transforms))
      << kLoad;
  state.transform_state = transforms;
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
