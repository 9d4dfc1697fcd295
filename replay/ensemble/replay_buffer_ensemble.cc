// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/ensemble/replay_buffer_ensemble.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/replay/ensemble/part_merge.h"
#include "rill/replay/ensemble/replay_buffer_ensemble_state.h"
#include "rill/replay/ensemble/share_split.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

using replay_internal::BatchPart;

constexpr absl::string_view kCreate = "ReplayBufferEnsemble::Create";
constexpr absl::string_view kSample = "ReplayBufferEnsemble::Sample";

absl::Status Refuse(absl::string_view caller, absl::string_view what,
                    const absl::AlphaNum& got, const absl::AlphaNum& want) {
  return InvalidArgument(caller, ": ", what, ": got ", got, ", want ", want);
}

absl::Status CheckOptions(const ReplayBufferEnsemble::Options& options) {
  const auto n = static_cast<int64_t>(options.members.size());
  if (n == 0) return Refuse(kCreate, "members", 0, ">= 1");
  for (int64_t i = 0; i < n; ++i) {
    if (options.members[i].buffer != nullptr) continue;
    return Refuse(kCreate, absl::StrCat("members[", i, "].buffer"), "null",
                  "a ReplayBuffer");
  }
  if (options.batch_size < 0 || options.batch_size > Sampler::kMaxBatchSize) {
    return Refuse(kCreate, "batch_size", options.batch_size,
                  absl::StrCat("[0, ", Sampler::kMaxBatchSize, "]"));
  }
  if (options.buffers_sampled < 0 || options.buffers_sampled > n) {
    return Refuse(kCreate, "buffers_sampled", options.buffers_sampled,
                  absl::StrCat("[0, ", n, "], the members"));
  }
  return absl::OkStatus();
}

}  // namespace

// --- Making ------------------------------------------------------------------

std::string ReplayBufferEnsemble::State::Label(size_t i) const {
  const std::string& name = members[i].name;
  return name.empty() ? absl::StrCat("member ", i)
                      : absl::StrCat("member ", i, " \"", name, "\"");
}

absl::StatusOr<std::vector<double>> ReplayBufferEnsemble::State::Normalised(
    absl::string_view caller, absl::Span<const double> given) const {
  if (given.size() != members.size()) {
    return Refuse(caller, "shares", given.size(),
                  absl::StrCat("one a member, ", members.size()));
  }
  double total = 0;
  int64_t above_zero = 0;
  bool is_equal = true;
  for (size_t i = 0; i < given.size(); ++i) {
    total += given[i];
    if (given[i] > 0) ++above_zero;
    is_equal = is_equal && given[i] == given[0];
    if (given[i] >= 0 && std::isfinite(total)) continue;
    return Refuse(caller, absl::StrCat("share of ", Label(i)), given[i],
                  "a finite one >= 0, and a finite sum");
  }
  if (above_zero < std::max<int64_t>(buffers_sampled, 1)) {
    return Refuse(
        caller, "shares", absl::StrCat(above_zero, " > 0"),
        absl::StrCat("at least ", std::max<int64_t>(buffers_sampled, 1)));
  }
  if (stacked && buffers_sampled == 0 && !is_equal) {
    return Refuse(caller, "shares", "some that differ with stacked",
                  "equal ones, or buffers_sampled > 0");
  }
  std::vector<double> normalised(given.begin(), given.end());
  for (double& share : normalised) share /= total;
  return normalised;
}

absl::StatusOr<std::unique_ptr<ReplayBufferEnsemble>>
ReplayBufferEnsemble::Create(Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  RILL_ASSIGN_OR_RETURN(auto transforms,
                        Compose::Create(std::move(options.transforms)));
  RILL_ASSIGN_OR_RETURN(TensorDict transform_state, transforms->InitialState());
  std::vector<double> shares;
  for (const Member& member : options.members) shares.push_back(member.share);
  auto state = std::make_unique<State>(
      std::move(options), std::move(transforms), std::move(transform_state));
  RILL_ASSIGN_OR_RETURN(shares, state->Normalised(kCreate, shares));
  {
    absl::MutexLock lock(&state->mutex);
    state->shares = std::move(shares);
    RILL_RETURN_IF_ERROR(state->CheckTransforms());
  }
  return std::unique_ptr<ReplayBufferEnsemble>(
      new ReplayBufferEnsemble(std::move(state)));
}

ReplayBufferEnsemble::ReplayBufferEnsemble(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

ReplayBufferEnsemble::~ReplayBufferEnsemble() = default;

// --- Sampling ----------------------------------------------------------------

std::vector<size_t> ReplayBufferEnsemble::State::DrawMembers() const {
  const Rng rng(seed, RngStream::kSampler);
  std::vector<double> left = shares;
  std::vector<size_t> drawn;
  for (int64_t draw = 0; draw < buffers_sampled; ++draw) {
    double total = 0;
    for (const double share : left) total += share;
    // Without replacement: a member that was drawn has no share in the next
    // draw. The number of the batch is the counter, so the draw needs no state.
    double at = total * rng.UniformDouble(static_cast<uint64_t>(batches),
                                          static_cast<uint32_t>(draw));
    // The last one > 0 where rounding leads beyond it.
    size_t chosen = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] <= 0) continue;
      chosen = i;
      if (at < left[i]) break;
      at -= left[i];
    }
    left[chosen] = 0;
    drawn.push_back(chosen);
  }
  return drawn;
}

absl::Status ReplayBufferEnsemble::State::Split(
    int64_t count, std::vector<double>* owed,
    std::vector<int64_t>* counts) const {
  if (count < 1 || count > Sampler::kMaxBatchSize) {
    return Refuse(kSample, "batch_size", count,
                  absl::StrCat("[1, ", Sampler::kMaxBatchSize, "]"));
  }
  // A copy: what parts are due changes only once all members have drawn.
  *owed = carry;
  if (!has_equal_parts()) {
    replay_internal::SplitByShares(count, shares, absl::MakeSpan(*owed),
                                   counts);
    return absl::OkStatus();
  }
  const int64_t parts = buffers_sampled > 0
                            ? buffers_sampled
                            : static_cast<int64_t>(members.size());
  if (count % parts != 0) {
    return Refuse(kSample, "batch_size", count,
                  absl::StrCat("a multiple of ", parts, ", the equal parts"));
  }
  counts->assign(members.size(), buffers_sampled > 0 ? 0 : count / parts);
  if (buffers_sampled == 0) return absl::OkStatus();
  for (const size_t i : DrawMembers()) (*counts)[i] = count / parts;
  return absl::OkStatus();
}

absl::Status ReplayBufferEnsemble::State::DrawParts(
    int64_t count, absl::Span<const int64_t> counts) {
  for (size_t i = 0; i < members.size(); ++i) {
    if (counts[i] == 0) continue;
    ReplayBuffer& buffer = *members[i].buffer;
    const int64_t clears = buffer.clears();
    // Items that a member drew before another one failed are used first. Those
    // of rows that were cleared since are drawn anew.
    if (held[i].items == counts[i] && held[i].clears == clears) continue;
    held[i].items = 0;
    held[i].clears = clears;
    const absl::Status status = buffer.SampleInto(counts[i], &held[i].rows);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat(kSample, ": ", Label(i), ", asked for ", counts[i],
                       " of ", count, " items, has ", buffer.size(),
                       " rows: ", status.message()));
    }
    held[i].items = counts[i];
  }
  return absl::OkStatus();
}

absl::Status ReplayBufferEnsemble::State::SampleInto(int64_t count,
                                                     TensorDict* out) {
  std::vector<double> owed;
  std::vector<int64_t> counts;
  RILL_RETURN_IF_ERROR(CheckTransforms());
  RILL_RETURN_IF_ERROR(Split(count, &owed, &counts));
  RILL_RETURN_IF_ERROR(DrawParts(count, counts));
  // Every member has drawn. From here on the batch has its number, and an error
  // costs it alone.
  carry = std::move(owed);
  ++batches;
  std::vector<BatchPart> parts;
  for (size_t i = 0; i < members.size(); ++i) {
    items[i] += counts[i];
    if (counts[i] == 0) continue;
    held[i].items = 0;
    parts.push_back({.member = static_cast<int64_t>(i),
                     .label = Label(i),
                     .rows = &held[i].rows});
  }
  RILL_RETURN_IF_ERROR(replay_internal::MergeParts(parts, stacked, out));
  return ApplyTransforms(out);
}

absl::Status ReplayBufferEnsemble::State::CheckTransforms() {
  if (is_checked || transforms->transforms().empty()) return absl::OkStatus();
  specs.resize(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    if (!specs[i].empty()) continue;
    absl::StatusOr<TensorDictSpec> spec = members[i].buffer->SampleSpec();
    RILL_RETURN_IF_ERROR(spec.status()) << "in " << Label(i);
    if (spec->empty()) return absl::OkStatus();
    specs[i] = *std::move(spec);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    TensorDictSpec sample = specs[i];
    // Parts without weights or masks are filled up where others have them.
    for (const TensorDictSpec& other : specs) {
      for (const absl::string_view key :
           {replay_internal::kWeightKey, replay_internal::kMaskKey}) {
        if (sample.Find(key) != nullptr || other.Find(key) == nullptr) continue;
        RILL_RETURN_IF_ERROR(sample.Set(key, *other.Find(key)));
      }
    }
    RILL_RETURN_IF_ERROR(sample.Set(replay_internal::kBufferIdsKey,
                                    LeafSpec::Unbounded(DType::kInt64, {})));
    const absl::Status status = transforms->ForwardSpec(sample).status();
    if (status.ok()) continue;
    return InvalidArgument(
        "ReplayBufferEnsemble: transforms: got some that cannot work on the "
        "samples of ",
        Label(i), ": ", status.message());
  }
  is_checked = true;
  specs.clear();
  return absl::OkStatus();
}

absl::Status ReplayBufferEnsemble::State::ApplyTransforms(TensorDict* out) {
  if (transforms->transforms().empty()) return absl::OkStatus();
  static constexpr std::array<absl::string_view, 4> kOrigins = {
      replay_internal::kBufferIdsKey, replay_internal::kIndexKey,
      replay_internal::kGenerationKey, replay_internal::kWeightKey};
  const replay_internal::Origins origins(kOrigins, *out);
  // A copy, so that a batch that fails teaches the transforms nothing.
  TensorDict learned = transform_state;
  RILL_RETURN_IF_ERROR(transforms->ForwardOwned(out, &learned)) << kSample;
  RILL_RETURN_IF_ERROR(origins.PutBack(out));
  transform_state = std::move(learned);
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> ReplayBufferEnsemble::Sample() {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(SampleInto(&batch));
  return batch;
}

absl::StatusOr<TensorDict> ReplayBufferEnsemble::Sample(int64_t batch_size) {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(SampleInto(batch_size, &batch));
  return batch;
}

absl::Status ReplayBufferEnsemble::SampleInto(TensorDict* out) {
  if (state_->batch_size == 0) {
    return FailedPrecondition(
        "ReplayBufferEnsemble::Sample: Options::batch_size: got 0, want > 0; "
        "set it, or call Sample(batch_size)");
  }
  return SampleInto(state_->batch_size, out);
}

absl::Status ReplayBufferEnsemble::SampleInto(int64_t batch_size,
                                              TensorDict* out) {
  if (out == nullptr) {
    return Refuse("ReplayBufferEnsemble::SampleInto", "out", "null",
                  "a TensorDict");
  }
  absl::MutexLock lock(&state_->mutex);
  return state_->SampleInto(batch_size, out);
}

// --- Accessors ---------------------------------------------------------------

absl::Status ReplayBufferEnsemble::SetShares(absl::Span<const double> shares) {
  RILL_ASSIGN_OR_RETURN(
      std::vector<double> normalised,
      state_->Normalised("ReplayBufferEnsemble::SetShares", shares));
  absl::MutexLock lock(&state_->mutex);
  state_->shares = std::move(normalised);
  return absl::OkStatus();
}

ReplayBufferEnsemble::Stats ReplayBufferEnsemble::GetStats() const {
  absl::MutexLock lock(&state_->mutex);
  return {.batches = state_->batches,
          .items = state_->items,
          .shares = state_->shares};
}

int64_t ReplayBufferEnsemble::size() const {
  int64_t rows = 0;
  for (const Member& member : state_->members) rows += member.buffer->size();
  return rows;
}

int64_t ReplayBufferEnsemble::num_members() const {
  return static_cast<int64_t>(state_->members.size());
}

ReplayBuffer& ReplayBufferEnsemble::member(int64_t i) const {
  return *state_->members[static_cast<size_t>(i)].buffer;
}

}  // namespace rill
