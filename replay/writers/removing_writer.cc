// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/removing_writer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/transition_unit.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

constexpr int64_t kStateVersion = 2;
constexpr int64_t kAnyVersion = std::numeric_limits<int64_t>::max();

// Its name tells states of different removers apart.
std::unique_ptr<Sampler> RemoverOf(std::unique_ptr<Selector> selector) {
  if (selector == nullptr) selector = MakeFifoSelector();
  const std::string name = absl::StrCat(selector->name(), "Remover");
  return *MakeSampler(std::move(selector), MakeTransitionUnit(), name);
}

WriterTraits TraitsOf(const Sampler& remover, uint64_t seed,
                      const Sampler* used_up_by) {
  return {
      .name = "RemovingWriter",
      .options = OptionValues()
                     .Part("remover", remover.name(), remover.traits().options)
                     .Unsigned("seed", seed)
                     .Choice("used_up_by", used_up_by == nullptr
                                               ? absl::string_view("none")
                                               : used_up_by->name()),
      .keeps_order = false};
}

class RemovingWriter final : public Writer {
 public:
  RemovingWriter(std::unique_ptr<Sampler> remover, uint64_t seed,
                 const Sampler* used_up_by)
      : Writer(TraitsOf(*remover, seed, used_up_by)),
        seed_(seed),
        used_up_by_(used_up_by),
        remover_(std::move(remover)) {}
  ~RemovingWriter() override { Detach(remover_->observer()); }

  absl::Status Attach(std::shared_ptr<Storage> storage) override {
    return AttachOneLane(std::move(storage), remover_->observer());
  }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override;
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status LoadState(absl::string_view state,
                         absl::Span<const std::string> changed) override;

 private:
  // Rows of a batch that go to slots in place.
  absl::Status Replace(const TensorDict& rows, int64_t first, Storage* storage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills victims_ with `count` different slots.
  absl::Status Choose(int64_t count, int64_t capacity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t seed_;
  const Sampler* const used_up_by_;
  const std::unique_ptr<Sampler> remover_;

  mutable absl::Mutex mutex_;
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the remover's plans.
  std::vector<Slot> victims_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Slot> chosen_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Slot> written_ ABSL_GUARDED_BY(mutex_);  // By this call.
  SamplePlan plan_ ABSL_GUARDED_BY(mutex_);
};

absl::Status RemovingWriter::Choose(int64_t count, int64_t capacity) {
  constexpr int kRounds = 64;
  victims_.clear();
  chosen_.clear();
  int64_t left = count;
  for (int round = 0; round < kRounds && left > 0; ++round) {
    const absl::Status status =
        remover_->Plan({.batch_size = std::min(left, Sampler::kMaxBatchSize),
                        .seed = seed_,
                        .batch_number = number_++},
                       &plan_);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat("RemovingWriter::Extend: ", status.message()));
    }
    // Some removers draw with replacement, so rows that are named twice are
    // asked for anew.
    for (const Draw& draw : plan_.draws) {
      if (!chosen_.insert(draw.slot).second) continue;
      victims_.push_back(draw.slot);
      --left;
    }
  }
  // Priorities that differ by many orders of magnitude may name the same rows
  // for ever.
  for (Slot slot = 0; slot < capacity && left > 0; ++slot) {
    if (!chosen_.insert(slot).second) continue;
    victims_.push_back(slot);
    --left;
  }
  return absl::OkStatus();
}

absl::Status RemovingWriter::Replace(const TensorDict& rows, int64_t first,
                                     Storage* storage) {
  RILL_ASSIGN_OR_RETURN(
      const TensorDict some,
      rows.Slice(0, first, first + static_cast<int64_t>(victims_.size())));
  // A set: a batch larger than the storage overwrites its own rows, which then
  // did not stay.
  written_.insert(victims_.begin(), victims_.end());
  return storage->WriteAt(victims_, some);
}

absl::StatusOr<std::string> RemovingWriter::SaveState() const {
  absl::MutexLock lock(&mutex_);
  RILL_ASSIGN_OR_RETURN(const std::string bytes, remover_->SaveState());
  RILL_ASSIGN_OR_RETURN(SavedState remover, SavedState::Decode(bytes));
  SavedState state(name(), kStateVersion);
  state.Set("plans", static_cast<int64_t>(number_));
  state.SetPart("remover", std::move(remover));
  return state.Encode();
}

absl::Status RemovingWriter::LoadState(absl::string_view bytes,
                                       absl::Span<const std::string> changed) {
  absl::MutexLock lock(&mutex_);
  uint64_t number = 0;
  std::string remover;
  if (SavedState::IsSavedState(bytes)) {
    RILL_ASSIGN_OR_RETURN(const SavedState state, SavedState::Decode(bytes));
    RILL_RETURN_IF_ERROR(state.CheckType(name(), kStateVersion));
    RILL_ASSIGN_OR_RETURN(number, state.Get<int64_t>("plans"));
    RILL_ASSIGN_OR_RETURN(const SavedState* const part,
                          state.Part("remover", remover_->name(), kAnyVersion));
    remover = part->Encode();  // The sampler checks its version.
  } else {
    // Version 1: a line with the number, then the remover's bytes.
    const std::pair<absl::string_view, absl::string_view> lines =
        absl::StrSplit(bytes, absl::MaxSplits('\n', 1));
    if (!absl::SimpleAtoi(lines.first, &number)) {
      return DataLoss("RemovingWriter::LoadState: first line: got \"",
                      absl::CHexEscape(lines.first.substr(0, 20)),
                      "\", want a number >= 0");
    }
    remover = std::string(lines.second);
  }
  std::vector<std::string> of_remover;
  for (absl::string_view name : changed) {
    if (absl::ConsumePrefix(&name, "remover.")) of_remover.emplace_back(name);
  }
  RILL_RETURN_IF_ERROR(remover_->LoadState(remover, {.changed = of_remover}))
      << "RemovingWriter::LoadState";
  number_ = number;
  return absl::OkStatus();
}

absl::StatusOr<ExtendResult> RemovingWriter::Extend(const TensorDict& batch,
                                                    const WriteInfo& info) {
  RILL_ASSIGN_OR_RETURN(Storage* const storage, AttachedStorage());
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, RowsOf(batch));
  absl::MutexLock lock(&mutex_);
  // Rows that do not fit are an error before anything is written.
  RILL_ASSIGN_OR_RETURN(const TensorDict none, rows.Slice(0, 0, 0));
  RILL_RETURN_IF_ERROR(storage->Extend(none, info).status());
  const int64_t count = rows.batch_shape()[0];
  const int64_t capacity = storage->capacity();
  written_.clear();
  int64_t done = 0;
  if (used_up_by_ != nullptr && count > 0) {
    victims_.clear();
    // Used-up rows go first, whether the storage is full or not.
    used_up_by_->AddUsedUp(count, &victims_);
    if (!victims_.empty()) {
      RILL_RETURN_IF_ERROR(Replace(rows, done, storage));
    }
    done += static_cast<int64_t>(victims_.size());
  }
  const int64_t written = storage->cursors()[0].written;
  // Behind the cursor, also in a ring that grew (accept_other_capacity).
  const int64_t room = std::min(capacity - storage->size(), count - done);
  if (room > 0) {
    RILL_ASSIGN_OR_RETURN(const TensorDict some,
                          rows.Slice(0, done, done + room));
    RILL_RETURN_IF_ERROR(storage->Extend(some, info).status());
    for (int64_t i = 0; i < room; ++i) {
      written_.insert((written + i) % capacity);
    }
    done += room;
  }
  while (done < count) {
    RILL_RETURN_IF_ERROR(Choose(std::min(capacity, count - done), capacity));
    RILL_RETURN_IF_ERROR(Replace(rows, done, storage));
    done += static_cast<int64_t>(victims_.size());
  }
  const auto stayed = static_cast<int64_t>(written_.size());
  return ExtendResult{.rows_written = stayed, .rows_dropped = count - stayed};
}

}  // namespace

std::unique_ptr<Writer> MakeRemovingWriter(RemovingWriterOptions options) {
  return std::make_unique<RemovingWriter>(RemoverOf(std::move(options.remover)),
                                          options.seed, options.used_up_by);
}

}  // namespace rill
