// SPDX-License-Identifier: Apache-2.0
// Opening a saved buffer goes from what depends on no rows to what does.
// Prepare compares everything with the options and loads transforms and
// numbers. The storage loads its rows, and LoadOfRows the state that belongs to
// them. The rate limiter's counts come last, since other buffers may share it.
// After an error the storage is cleared, so a failed Open leaves nothing
// behind.
#include "rill/replay/parts/buffer_checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_directory.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/parts/checkpoint_fields.h"
#include "rill/replay/rate_limiter.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

namespace {

absl::StatusOr<uint64_t> UnsignedField(const Manifest& manifest,
                                       const std::string& name) {
  RILL_ASSIGN_OR_RETURN(const std::string text, manifest.Text(name));
  uint64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return DataLoss("ReplayBuffer::Open: field \"", name, "\": got \"",
                  text.substr(0, 80), "\", want a number >= 0");
}

absl::Status Mismatch(absl::string_view what, absl::string_view got,
                      absl::string_view want) {
  return FailedPrecondition("ReplayBuffer::Open: ", what, ": got ", got,
                            " in the directory, want ", want,
                            " as in the options");
}

// The names of the saved transforms, in order.
absl::StatusOr<std::vector<std::string>> SavedTransforms(
    const Manifest& manifest) {
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("transforms"));
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(names.emplace_back(),
                          manifest.Text(TransformField(i)));
  }
  return names;
}

std::string UnitName(const UnitTransform* unit) {
  return std::string(unit == nullptr ? "" : unit->name());
}

// None where the directory has a storage's save of its own.
absl::StatusOr<std::string> RowsField(const Manifest& manifest) {
  const std::string field(kRowsField);
  if (!manifest.fields.contains(field)) return std::string();
  RILL_ASSIGN_OR_RETURN(const std::string rows, manifest.Text(field));
  if (rows == kInPlaceRows || rows == kSharedRows) return rows;
  return DataLoss("ReplayBuffer::Open: field \"", field, "\": got \"",
                  rows.substr(0, 80), "\", want \"", kInPlaceRows, "\" or \"",
                  kSharedRows, "\"");
}

// The lanes that were saved, as many as there are here.
absl::StatusOr<Lanes> SavedLanes(const Manifest& manifest, const Lanes& lanes,
                                 const BufferOpenOptions& options) {
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("lanes"));
  if (count != lanes.count) {
    return Mismatch("lanes", absl::StrCat(count), absl::StrCat(lanes.count));
  }
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, manifest.Int("capacity"));
  if (capacity < count || capacity % count != 0 || capacity > kMaxWritten) {
    return DataLoss("ReplayBuffer::Open: field \"capacity\": got ", capacity,
                    ", want a multiple of ", count, " lanes in [1, ",
                    kMaxWritten, "]");
  }
  if (capacity != lanes.num_slots() && !options.accept_other_capacity) {
    return Mismatch(
        "capacity", absl::StrCat(capacity),
        absl::StrCat(lanes.num_slots(), " (or accept_other_capacity)"));
  }
  return Lanes{.count = count, .capacity = capacity / count};
}

// The directory is of a buffer like this one.
absl::Status CheckSame(const Manifest& manifest, const Sampler& sampler,
                       const UnitTransform* unit,
                       const std::vector<std::string>& own) {
  RILL_ASSIGN_OR_RETURN(const std::string name, manifest.Text("sampler"));
  if (name != sampler.name()) {
    return Mismatch("sampler", name, sampler.name());
  }
  std::string unit_name;
  if (manifest.fields.contains(std::string(kUnitField))) {
    RILL_ASSIGN_OR_RETURN(unit_name, manifest.Text(std::string(kUnitField)));
  }
  if (unit_name != UnitName(unit)) {
    return Mismatch("unit_transform", absl::StrCat("\"", unit_name, "\""),
                    absl::StrCat("\"", UnitName(unit), "\""));
  }
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> saved,
                        SavedTransforms(manifest));
  if (saved == own) return absl::OkStatus();
  return Mismatch("transforms",
                  absl::StrCat("[", absl::StrJoin(saved, ", "), "]"),
                  absl::StrCat("[", absl::StrJoin(own, ", "), "]"));
}

// The transforms' state, copied out of the files; empty where none was saved.
absl::StatusOr<TensorDict> ReadTransforms(const std::string& directory) {
  const std::string path = JoinPath(directory, kTransformsDirectory);
  if (!PathExists(path)) return TensorDict();
  return LoadMemmapDirectory(path, {.mode = LoadMemmapOptions::Mode::kCopy});
}

absl::StatusOr<std::string> ReadState(const std::string& directory,
                                      absl::string_view file) {
  const std::string path = JoinPath(directory, file);
  if (PathExists(path)) return ReadFile(path);
  return DataLoss("ReplayBuffer::Open: \"", path, "\": got none, want a file");
}

absl::Status LoadWriter(const std::string& directory, const Manifest& manifest,
                        absl::Span<const std::string> changed, Writer* writer) {
  const std::string field(kWriterField);
  if (!manifest.fields.contains(field)) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const std::string name, manifest.Text(field));
  if (name != writer->name()) return Mismatch(field, name, writer->name());
  RILL_ASSIGN_OR_RETURN(const std::string state,
                        ReadState(directory, kWriterFile));
  return writer->LoadState(state, changed);
}

// None where it had none. Older saves have its counts in the manifest.
absl::StatusOr<std::string> ReadLimiter(const std::string& directory,
                                        const Manifest& manifest) {
  const std::string path = JoinPath(directory, kLimiterFile);
  if (PathExists(path)) return ReadFile(path);
  if (!manifest.fields.contains("rate_limiter_inserts")) return std::string();
  SavedState state("RateLimiter", 1);
  for (const char* count : {"inserts", "samples", "deletes"}) {
    RILL_ASSIGN_OR_RETURN(const int64_t value,
                          manifest.Int(absl::StrCat("rate_limiter_", count)));
    state.Set(count, value);
  }
  return state.Encode();
}

// The number that the next draw has, where the batches that were made ahead are
// drawn anew: theirs, but for those before one that was handed out.
absl::StatusOr<uint64_t> NumberBeforeAhead(const Manifest& manifest,
                                           uint64_t batch_number) {
  if (!manifest.fields.contains("ahead")) return batch_number;
  RILL_ASSIGN_OR_RETURN(int64_t i, manifest.Int("ahead"));
  // From the newest back: numbers without a gap up to the next draw are of
  // batches that nobody has.
  for (--i; i >= 0; --i) {
    RILL_ASSIGN_OR_RETURN(const uint64_t number,
                          UnsignedField(manifest, AheadField(i, "number")));
    if (number + 1 != batch_number) break;
    batch_number = number;
  }
  return batch_number;
}

// Some of the files that were read may be of another save than others.
absl::Status Replaced(const std::string& directory) {
  return DataLoss(
      "ReplayBuffer::Open: \"", directory,
      "\": got another save in its place while it was read, want one that "
      "stays so long; open it again");
}

}  // namespace

absl::Status BufferCheckpoint::Open(
    const std::string& directory, const BufferOpenOptions& options,
    absl::FunctionRef<absl::StatusOr<const BufferCheckpoint*>(uint64_t seed)>
        make) {
  // Another process may replace the save between two files. After success
  // LoadOfRows has looked already, so only an error needs a look here.
  const HeldDirectory held(directory);
  const auto open = [&]() -> absl::Status {
    FileSums sums = StorageSums(directory);  // Storage::Load checks them.
    RILL_ASSIGN_OR_RETURN(const Manifest manifest,
                          ReadSave(directory, /*is_part=*/false, &sums));
    RILL_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(manifest));
    RILL_ASSIGN_OR_RETURN(const BufferCheckpoint* const made, make(seed));
    return made->Load(directory, manifest, options, held);
  };
  const absl::Status opened = open();
  if (opened.ok() || held.IsStillThere()) return opened;
  return Replaced(directory);
}

absl::StatusOr<Manifest> BufferCheckpoint::ReadSave(
    const std::string& directory, bool is_part, FileSums* sums) {
  RILL_ASSIGN_OR_RETURN(Manifest manifest,
                        ReadManifest(directory, kKind, kPartVersion, sums));
  RILL_ASSIGN_OR_RETURN(const std::string rows, RowsField(manifest));
  if ((rows == kSharedRows) == is_part) return manifest;
  return FailedPrecondition(
      "ReplayBuffer::Open: \"", directory, "\": got ",
      is_part ? "a buffer that was saved by itself, want a part of a run"
              : "a part of a run without its rows, want a buffer that was "
                "saved by itself; open the whole with RunCheckpoint");
}

absl::StatusOr<uint64_t> BufferCheckpoint::SeedOf(const Manifest& manifest) {
  return UnsignedField(manifest, "seed");
}

absl::Status BufferCheckpoint::CheckHasNoRows(const Saved& saved) const {
  if (saved.is_position || parts_.storage->size() == 0) return absl::OkStatus();
  return FailedPrecondition(
      "ReplayBuffer::Open: rows in Options::storage: got ",
      parts_.storage->size(),
      ", want 0; open into an empty storage, or several buffers "
      "on one with RunCheckpoint");
}

absl::StatusOr<BufferCheckpoint::Saved> BufferCheckpoint::Prepare(
    const std::string& directory, const Manifest& manifest,
    const BufferOpenOptions& options) const {
  Saved saved;
  RILL_ASSIGN_OR_RETURN(uint64_t number,
                        UnsignedField(manifest, "batch_number"));
  RILL_ASSIGN_OR_RETURN(const std::string rows, RowsField(manifest));
  saved.is_position = rows == kInPlaceRows;
  RILL_ASSIGN_OR_RETURN(
      saved.lanes,
      SavedLanes(manifest, parts_.storage->lanes(),
                 saved.is_position ? BufferOpenOptions() : options));
  // Rows that move, and rows of a position, are known by their time. A writer
  // that puts rows in the places of others keeps no such order.
  const bool has_moved = saved.lanes != parts_.storage->lanes();
  if ((has_moved || saved.is_position) &&
      (!parts_.writes->writer().traits().keeps_order ||
       manifest.fields.contains(std::string(kWriterField)))) {
    return Mismatch(
        absl::StrCat(saved.is_position ? "position" : "capacity",
                     " of a buffer with a ", parts_.writes->writer().name(),
                     ", or that had a writer with a state: rows "
                     "lie in no order of time"),
        absl::StrCat(saved.lanes.num_slots()),
        absl::StrCat(parts_.storage->capacity()));
  }
  RILL_RETURN_IF_ERROR(CheckSame(manifest, *parts_.sampler, parts_.unit,
                                 parts_.transforms->Names()));
  const OptionValues values = PartOptions();
  RILL_ASSIGN_OR_RETURN(const std::vector<OptionChange> changes,
                        CompareOptions(manifest, values));
  if (options.changed_options != nullptr) *options.changed_options = changes;
  RILL_RETURN_IF_ERROR(CheckChanges("ReplayBuffer::Open", changes, values,
                                    options.accept_options));
  saved.changed_sampler = ChangesOf("sampler", changes);
  saved.changed_writer = ChangesOf("writer", changes);
  // Batches ahead were made by the old options, unless only the writer's
  // changed, on which no batch depends.
  saved.drops_ahead =
      std::any_of(changes.begin(), changes.end(), [](const auto& change) {
        return !absl::StartsWith(change.option, "writer");
      });
  if (saved.drops_ahead) {
    RILL_ASSIGN_OR_RETURN(number, NumberBeforeAhead(manifest, number));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict learned, ReadTransforms(directory));
  RILL_RETURN_IF_ERROR(parts_.transforms->LoadState(learned, number))
      << "ReplayBuffer::Open: transforms";
  parts_.samples->SetBatchNumber(number);
  if (parts_.writes->rate_limiter() != nullptr) {
    RILL_ASSIGN_OR_RETURN(saved.limiter, ReadLimiter(directory, manifest));
  }
  return saved;
}

absl::Status BufferCheckpoint::Load(const std::string& directory,
                                    const Manifest& manifest,
                                    const BufferOpenOptions& options,
                                    const HeldDirectory& held) const {
  RILL_ASSIGN_OR_RETURN(const Saved saved,
                        Prepare(directory, manifest, options));
  RILL_RETURN_IF_ERROR(CheckHasNoRows(saved));
  if (saved.is_position) {
    return LoadPosition(directory, manifest, saved, options.accept_newer, held);
  }
  RILL_RETURN_IF_ERROR(parts_.storage->Load(
      JoinPath(directory, kStorageDirectory),
      {.accept_other_capacity = options.accept_other_capacity}));
  absl::Status status = LoadOfRows(directory, manifest, saved, held);
  // Last: others may share the limiter.
  if (status.ok()) status = LoadCounts(saved);
  // Rows without the state that belongs to them must not stay.
  if (!status.ok()) parts_.storage->Clear().IgnoreError();
  return status;
}

absl::Status BufferCheckpoint::LoadAhead(const std::string& directory,
                                         const Manifest& manifest) const {
  if (!manifest.fields.contains("ahead")) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("ahead"));
  if (count < 0) {
    return DataLoss("ReplayBuffer::Open: field \"ahead\": got ", count,
                    ", want >= 0");
  }
  const std::string parent = JoinPath(directory, kAheadDirectory);
  std::vector<SampleQueue::Made> ahead;
  for (int64_t i = 0; i < count; ++i) {
    SampleQueue::Made made;
    RILL_ASSIGN_OR_RETURN(made.items, manifest.Int(AheadField(i, "items")));
    if (made.items != parts_.samples->batch_size()) {
      return Mismatch("batch_size of the batches that were made ahead",
                      absl::StrCat(made.items),
                      absl::StrCat(parts_.samples->batch_size()));
    }
    RILL_ASSIGN_OR_RETURN(made.number,
                          UnsignedField(manifest, AheadField(i, "number")));
    if (manifest.fields.contains(AheadField(i, "epoch"))) {
      RILL_ASSIGN_OR_RETURN(made.epoch,
                            UnsignedField(manifest, AheadField(i, "epoch")));
    }
    RILL_ASSIGN_OR_RETURN(
        made.rows,
        LoadMemmapDirectory(JoinPath(parent, absl::StrCat(i)),
                            {.mode = LoadMemmapOptions::Mode::kCopy}));
    ahead.push_back(std::move(made));
  }
  return parts_.samples->LoadAhead(std::move(ahead));
}

absl::Status BufferCheckpoint::LoadOfRows(const std::string& directory,
                                          const Manifest& manifest,
                                          const Saved& saved,
                                          const HeldDirectory& held) const {
  if (saved.lanes == parts_.storage->lanes()) {
    return LoadOfRows(directory, manifest, saved, nullptr, held);
  }
  const MovedRows moved = MovedRows::Of(saved.lanes, parts_.storage->lanes(),
                                        parts_.storage->cursors());
  return LoadOfRows(directory, manifest, saved, &moved, held);
}

absl::Status BufferCheckpoint::LoadOfRows(const std::string& directory,
                                          const Manifest& manifest,
                                          const Saved& saved,
                                          const MovedRows* moved,
                                          const HeldDirectory& held) const {
  RILL_ASSIGN_OR_RETURN(const std::string sampler_state,
                        ReadState(directory, kSamplerFile));
  RILL_RETURN_IF_ERROR(parts_.sampler->LoadState(
      sampler_state, {.moved = moved, .changed = saved.changed_sampler}));
  // Batches that were made ahead name slots of the save, so they fit only rows
  // that have not moved.
  if (moved == nullptr && !saved.drops_ahead) {
    RILL_RETURN_IF_ERROR(LoadAhead(directory, manifest));
  }
  RILL_RETURN_IF_ERROR(LoadWriter(directory, manifest, saved.changed_writer,
                                  &parts_.writes->writer()));
  RILL_RETURN_IF_ERROR(
      parts_.transforms->CheckRows(parts_.storage->spec(), /*is_stored=*/true));
  return held.IsStillThere() ? absl::OkStatus() : Replaced(directory);
}

absl::Status BufferCheckpoint::LoadPosition(const std::string& directory,
                                            const Manifest& manifest,
                                            const Saved& saved,
                                            bool accept_newer,
                                            const HeldDirectory& held) const {
  RILL_ASSIGN_OR_RETURN(const std::string position,
                        ReadState(directory, kPositionFile));
  // Called while observers see the rows of the position and nothing on the disk
  // has changed: an error here leaves the storage as it was.
  const auto accept = [&](const PositionRows& rows) {
    if (rows.missing == 0) {
      return LoadOfRows(directory, manifest, saved, nullptr, held);
    }
    MovedRows kept{.from = parts_.storage->lanes()};
    for (const SlotRange& range : rows.kept) {
      // Rows that are still there keep their slots. As moved rows their
      // priorities follow, and all else begins anew.
      kept.ranges.push_back({range.first, range.first, range.count});
    }
    return LoadOfRows(directory, manifest, saved, &kept, held);
  };
  RILL_RETURN_IF_ERROR(
      parts_.storage->LoadPosition(position, accept_newer, accept))
      << "ReplayBuffer::Open: \"" << directory << "\"";
  return LoadCounts(saved);
}

absl::Status BufferCheckpoint::LoadCounts(const Saved& saved) const {
  if (saved.limiter.empty()) return absl::OkStatus();
  return parts_.writes->rate_limiter()->LoadState(saved.limiter);
}

}  // namespace rill::replay_internal
