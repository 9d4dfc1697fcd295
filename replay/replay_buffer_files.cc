// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer::Save and Open. docs/formats/replay_buffer.md has the files.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/file.h"
#include "rill/base/held_directory.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"

namespace rill {
namespace {

constexpr absl::string_view kKind = "replay_buffer";
constexpr int64_t kVersion = 1;
constexpr int64_t kPositionVersion = 2;  // Where rows are in place.
constexpr absl::string_view kRowsField = "rows";
constexpr absl::string_view kInPlaceRows = "in_place";
constexpr int64_t kPartVersion = 3;  // Where they are saved elsewhere.
constexpr absl::string_view kSharedRows = "shared";
constexpr absl::string_view kPositionFile = "storage.position";
constexpr absl::string_view kStorageDirectory = "storage";
constexpr absl::string_view kSamplerFile = "sampler.state";
constexpr absl::string_view kWriterFile = "writer.state";
constexpr absl::string_view kWriterField = "writer";
constexpr absl::string_view kTransformsDirectory = "transforms";
constexpr absl::string_view kAheadDirectory = "ahead";
constexpr absl::string_view kUnitField = "unit_transform";

std::string TransformField(int64_t i) { return absl::StrCat("transform_", i); }

absl::StatusOr<uint64_t> UnsignedField(const Manifest& manifest,
                                       const std::string& name) {
  RILL_ASSIGN_OR_RETURN(const std::string text, manifest.Text(name));
  uint64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return absl::DataLossError(absl::StrCat("ReplayBuffer::Open: field \"", name,
                                          "\": got \"", text.substr(0, 80),
                                          "\", want a number >= 0"));
}

absl::Status Mismatch(absl::string_view what, absl::string_view got,
                      absl::string_view want) {
  return absl::FailedPreconditionError(
      absl::StrCat("ReplayBuffer::Open: ", what, ": got ", got,
                   " in the directory, want ", want, " as in the options"));
}

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

std::string AheadField(int64_t i, absl::string_view what) {
  return absl::StrCat("ahead_", i, "_", what);
}

// None where the directory has a storage's save of its own.
absl::StatusOr<std::string> RowsField(const Manifest& manifest) {
  const std::string field(kRowsField);
  if (!manifest.fields.contains(field)) return std::string();
  RILL_ASSIGN_OR_RETURN(const std::string rows, manifest.Text(field));
  if (rows == kInPlaceRows || rows == kSharedRows) return rows;
  return absl::DataLossError(absl::StrCat(
      "ReplayBuffer::Open: field \"", field, "\": got \"", rows.substr(0, 80),
      "\", want \"", kInPlaceRows, "\" or \"", kSharedRows, "\""));
}

// The lanes that were saved, as many as there are here.
absl::StatusOr<Lanes> SavedLanes(const Manifest& manifest, const Lanes& lanes,
                                 const ReplayBuffer::OpenOptions& options) {
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("lanes"));
  if (count != lanes.count) {
    return Mismatch("lanes", absl::StrCat(count), absl::StrCat(lanes.count));
  }
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, manifest.Int("capacity"));
  if (capacity < count || capacity % count != 0 || capacity > kMaxWritten) {
    return absl::DataLossError(absl::StrCat(
        "ReplayBuffer::Open: field \"capacity\": got ", capacity,
        ", want a multiple of ", count, " lanes in [1, ", kMaxWritten, "]"));
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

absl::StatusOr<TensorDict> ReadTransforms(const std::string& directory) {
  const std::string path = JoinPath(directory, kTransformsDirectory);
  if (!PathExists(path)) return TensorDict();
  return LoadMemmapDirectory(path, {.mode = LoadMemmapOptions::Mode::kCopy});
}

absl::StatusOr<std::string> ReadState(const std::string& directory,
                                      absl::string_view file) {
  const std::string path = JoinPath(directory, file);
  if (PathExists(path)) return ReadFile(path);
  return absl::DataLossError(absl::StrCat("ReplayBuffer::Open: \"", path,
                                          "\": got none, want a file"));
}

// Where it has none, nothing.
absl::Status SaveWriter(const std::string& directory, const Writer& writer,
                        Manifest* manifest) {
  RILL_ASSIGN_OR_RETURN(const std::string state, writer.SaveState());
  if (state.empty()) return absl::OkStatus();
  manifest->fields[std::string(kWriterField)] = std::string(writer.name());
  return WriteFileAtomically(JoinPath(directory, kWriterFile), state);
}

absl::Status LoadWriter(const std::string& directory, const Manifest& manifest,
                        absl::Span<const std::string> changed, Writer* writer) {
  const std::string field(kWriterField);
  if (!manifest.fields.contains(field)) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const std::string name, manifest.Text(field));
  if (name != writer->name()) return Mismatch(field, name, writer->name());
  RILL_ASSIGN_OR_RETURN(const std::string state,
                        ReadState(directory, kWriterFile));
  return changed.empty() ? writer->LoadState(state)
                         : writer->LoadChangedState(state, changed);
}

// The number that the next draw has, where the batches that were made ahead are
// drawn anew: theirs, but for those before one that was handed out.
absl::StatusOr<uint64_t> NumberBeforeAhead(const Manifest& manifest,
                                           uint64_t batch_number) {
  if (!manifest.fields.contains("ahead")) return batch_number;
  RILL_ASSIGN_OR_RETURN(int64_t i, manifest.Int("ahead"));
  for (--i; i >= 0; --i) {
    RILL_ASSIGN_OR_RETURN(const uint64_t number,
                          UnsignedField(manifest, AheadField(i, "number")));
    if (number + 1 != batch_number) break;
    batch_number = number;
  }
  return batch_number;
}

// Of the files that were read some may be of another save than others.
absl::Status Replaced(const std::string& directory) {
  return absl::DataLossError(absl::StrCat(
      "ReplayBuffer::Open: \"", directory,
      "\": got another save in its place while it was read, want one that "
      "stays so long; open it again"));
}

// What the storage's own manifest tells of its files, which then need not be
// read for another one; none where it has none.
FileSums StorageSums(const std::string& directory) {
  FileSums sums;
  const auto stored = ReadFileSums(JoinPath(directory, kStorageDirectory));
  if (!stored.ok()) return sums;
  for (const auto& [path, sum] : *stored) {
    sums[JoinPath(kStorageDirectory, path)] = sum;
  }
  return sums;
}

}  // namespace

absl::Status ReplayBuffer::State::SaveTo(const std::string& directory,
                                         Rows rows) {
  const int64_t writes_before = writes->events();
  Manifest manifest;
  manifest.kind = std::string(kKind);
  FileSums sums;
  if (rows == Rows::kInPlace) {
    manifest.version = kPositionVersion;
    manifest.fields[std::string(kRowsField)] = std::string(kInPlaceRows);
    RILL_ASSIGN_OR_RETURN(const std::string position, storage->SavePosition());
    RILL_RETURN_IF_ERROR(
        WriteFileAtomically(JoinPath(directory, kPositionFile), position));
  } else if (rows == Rows::kShared) {
    manifest.version = kPartVersion;
    manifest.fields[std::string(kRowsField)] = std::string(kSharedRows);
  } else {
    manifest.version = kVersion;
    RILL_RETURN_IF_ERROR(storage->Save(JoinPath(directory, kStorageDirectory)));
    sums = StorageSums(directory);
  }
  RILL_ASSIGN_OR_RETURN(const std::string sampler_state, sampler->SaveState());
  if (writes->events() != writes_before) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ReplayBuffer::Save: events of the storage during the save: got ",
        writes->events() - writes_before,
        ", want 0; stop the writers of other buffers on it first"));
  }
  RILL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(directory, kSamplerFile), sampler_state));
  manifest.fields["batch_number"] = absl::StrCat(samples->batch_number());
  manifest.fields["sampler"] = std::string(sampler->name());
  RILL_RETURN_IF_ERROR(SaveWriter(directory, writes->writer(), &manifest));
  if (unit_transform != nullptr) {
    manifest.fields[std::string(kUnitField)] = UnitName(unit_transform.get());
  }
  manifest.SetInt("lanes", storage->lanes().count);
  manifest.SetInt("capacity", storage->capacity());
  manifest.fields["seed"] = absl::StrCat(samples->seed());
  samples->AwaitMade();
  RILL_RETURN_IF_ERROR(SaveAhead(directory, &manifest));
  if (const RateLimiter* const limiter = writes->rate_limiter();
      limiter != nullptr) {
    const RateLimiter::State counts = limiter->SaveState();
    manifest.SetInt("rate_limiter_inserts", counts.inserts);
    manifest.SetInt("rate_limiter_samples", counts.samples);
    manifest.SetInt("rate_limiter_deletes", counts.deletes);
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict learned, transforms->SaveState());
  if (!learned.empty()) {
    RILL_RETURN_IF_ERROR(SaveMemmapDirectory(
        learned, JoinPath(directory, kTransformsDirectory)));
  }
  const std::vector<std::string> names = transforms->Names();
  manifest.SetInt("transforms", static_cast<int64_t>(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    manifest.fields[TransformField(static_cast<int64_t>(i))] = names[i];
  }
  replay_internal::SaveOptions(PartOptions(), &manifest);
  return WriteManifest(manifest, directory, &sums);
}

absl::Status ReplayBuffer::State::SaveAhead(const std::string& directory,
                                            Manifest* manifest) const {
  using Made = replay_internal::SampleQueue::Made;
  RILL_ASSIGN_OR_RETURN(const std::vector<Made> ahead, samples->SaveAhead());
  if (ahead.empty()) return absl::OkStatus();
  const std::string parent = JoinPath(directory, kAheadDirectory);
  RILL_RETURN_IF_ERROR(CreateDirectories(parent));
  manifest->SetInt("ahead", static_cast<int64_t>(ahead.size()));
  int64_t i = 0;
  for (const Made& made : ahead) {
    manifest->SetInt(AheadField(i, "items"), made.items);
    manifest->fields[AheadField(i, "number")] = absl::StrCat(made.number);
    if (made.epoch.has_value()) {
      manifest->fields[AheadField(i, "epoch")] = absl::StrCat(*made.epoch);
    }
    RILL_RETURN_IF_ERROR(
        SaveMemmapDirectory(made.rows, JoinPath(parent, absl::StrCat(i))));
    ++i;
  }
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::LoadAhead(const std::string& directory,
                                            const Manifest& manifest) {
  if (!manifest.fields.contains("ahead")) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("ahead"));
  if (count < 0) {
    return absl::DataLossError(absl::StrCat(
        "ReplayBuffer::Open: field \"ahead\": got ", count, ", want >= 0"));
  }
  const std::string parent = JoinPath(directory, kAheadDirectory);
  std::vector<replay_internal::SampleQueue::Made> ahead;
  for (int64_t i = 0; i < count; ++i) {
    replay_internal::SampleQueue::Made made;
    RILL_ASSIGN_OR_RETURN(made.items, manifest.Int(AheadField(i, "items")));
    if (made.items != samples->batch_size()) {
      return Mismatch("batch_size of the batches that were made ahead",
                      absl::StrCat(made.items),
                      absl::StrCat(samples->batch_size()));
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
  return samples->LoadAhead(std::move(ahead));
}

absl::Status ReplayBuffer::State::ReplaceSave(absl::string_view caller,
                                              const std::string& directory,
                                              Rows rows) {
  absl::MutexLock pause(&pause_mutex);
  RILL_RETURN_IF_ERROR(CheckReplaceable(caller, directory, kManifestFile));
  return ReplaceDirectory(directory, [&](const std::string& temporary)
                                         ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                           return SaveTo(temporary, rows);
                                         });
}

absl::Status ReplayBuffer::Save(const std::string& directory) const {
  return state_->ReplaceSave("ReplayBuffer::Save", directory,
                             State::Rows::kCopied);
}

absl::Status ReplayBuffer::SavePosition(const std::string& directory) const {
  constexpr absl::string_view kCaller = "ReplayBuffer::SavePosition";
  if (!state_->writes->writer().keeps_order()) {
    return absl::FailedPreconditionError(absl::StrCat(
        kCaller, ": writer: got ", state_->writes->writer().name(),
        ", want one that appends: what is written in place of other rows ",
        "is not undone; use Save"));
  }
  return state_->ReplaceSave(kCaller, directory, State::Rows::kInPlace);
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Open(
    const std::string& directory, Options options) {
  return Open(directory, std::move(options), OpenOptions());
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Open(
    const std::string& directory, Options options,
    const OpenOptions& open_options) {
  const HeldDirectory held(directory);
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<ReplayBuffer>> {
    FileSums sums = StorageSums(directory);  // Storage::Load checks them.
    RILL_ASSIGN_OR_RETURN(const Manifest manifest,
                          State::ReadSave(directory, /*is_part=*/false, &sums));
    RILL_ASSIGN_OR_RETURN(options.seed, State::SeedOf(manifest));
    RILL_ASSIGN_OR_RETURN(auto buffer, Create(std::move(options)));
    RILL_RETURN_IF_ERROR(
        buffer->state_->LoadFrom(directory, manifest, open_options, held));
    return buffer;
  };
  absl::StatusOr<std::unique_ptr<ReplayBuffer>> opened = open();
  if (!opened.ok() && !held.IsStillThere()) return Replaced(directory);
  return opened;
}

absl::StatusOr<Manifest> ReplayBuffer::State::ReadSave(
    const std::string& directory, bool is_part, FileSums* sums) {
  RILL_ASSIGN_OR_RETURN(Manifest manifest,
                        ReadManifest(directory, kKind, kPartVersion, sums));
  RILL_ASSIGN_OR_RETURN(const std::string rows, RowsField(manifest));
  if ((rows == kSharedRows) == is_part) return manifest;
  return absl::FailedPreconditionError(absl::StrCat(
      "ReplayBuffer::Open: \"", directory, "\": got ",
      is_part ? "a buffer that was saved by itself, want a part of a run"
              : "a part of a run without its rows, want a buffer that was "
                "saved by itself; open the whole with RunCheckpoint"));
}

absl::StatusOr<uint64_t> ReplayBuffer::State::SeedOf(const Manifest& manifest) {
  return UnsignedField(manifest, "seed");
}

OptionValues ReplayBuffer::State::PartOptions() const {
  OptionValues values;
  values.Part("sampler", sampler->name(), sampler->option_values());
  if (unit_transform != nullptr) {
    values.Part("unit_transform", unit_transform->name(),
                unit_transform->option_values());
  }
  transforms->AddOptions(&values);
  values.Part("writer", writes->writer().name(),
              writes->writer().option_values());
  return values;
}

absl::StatusOr<ReplayBuffer::State::Saved> ReplayBuffer::State::Prepare(
    const std::string& directory, const Manifest& manifest,
    const OpenOptions& options) {
  Saved saved;
  RILL_ASSIGN_OR_RETURN(uint64_t number,
                        UnsignedField(manifest, "batch_number"));
  RILL_ASSIGN_OR_RETURN(const std::string rows, RowsField(manifest));
  saved.is_position = rows == kInPlaceRows;
  if (!saved.is_position && storage->size() != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ReplayBuffer::Open: rows in Options::storage: got ", storage->size(),
        ", want 0; open into an empty storage, or several buffers "
        "on one with RunCheckpoint"));
  }
  RILL_ASSIGN_OR_RETURN(
      saved.lanes, SavedLanes(manifest, storage->lanes(),
                              saved.is_position ? OpenOptions() : options));
  const bool has_moved = saved.lanes != storage->lanes();
  if ((has_moved || saved.is_position) &&
      (!writes->writer().keeps_order() ||
       manifest.fields.contains(std::string(kWriterField)))) {
    return Mismatch(
        absl::StrCat(saved.is_position ? "position" : "capacity",
                     " of a buffer with a ", writes->writer().name(),
                     ", or that had a writer with a state: rows "
                     "lie in no order of time"),
        absl::StrCat(saved.lanes.num_slots()),
        absl::StrCat(storage->capacity()));
  }
  RILL_RETURN_IF_ERROR(
      CheckSame(manifest, *sampler, unit_transform.get(), transforms->Names()));
  const OptionValues values = PartOptions();
  RILL_ASSIGN_OR_RETURN(const std::vector<OptionChange> changes,
                        replay_internal::CompareOptions(manifest, values));
  if (options.changed_options != nullptr) *options.changed_options = changes;
  RILL_RETURN_IF_ERROR(replay_internal::CheckChanges(
      "ReplayBuffer::Open", changes, values, options.accept_options));
  saved.changed_sampler = replay_internal::ChangesOf("sampler", changes);
  saved.changed_writer = replay_internal::ChangesOf("writer", changes);
  saved.drops_ahead =
      std::any_of(changes.begin(), changes.end(), [](const auto& change) {
        return !absl::StartsWith(change.option, "writer");
      });
  if (saved.drops_ahead) {
    RILL_ASSIGN_OR_RETURN(number, NumberBeforeAhead(manifest, number));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict learned, ReadTransforms(directory));
  RILL_RETURN_IF_ERROR(transforms->LoadState(learned, number))
      << "ReplayBuffer::Open: transforms";
  samples->SetBatchNumber(number);
  return saved;
}

absl::Status ReplayBuffer::State::LoadFrom(const std::string& directory,
                                           const Manifest& manifest,
                                           const OpenOptions& options,
                                           const HeldDirectory& held) {
  RILL_ASSIGN_OR_RETURN(const Saved saved,
                        Prepare(directory, manifest, options));
  if (saved.is_position) {
    return LoadPosition(directory, manifest, saved, options.accept_newer, held);
  }
  RILL_RETURN_IF_ERROR(
      storage->Load(JoinPath(directory, kStorageDirectory),
                    {.accept_other_capacity = options.accept_other_capacity}));
  absl::Status status = LoadOfRows(directory, manifest, saved, held);
  // Last: others may share the limiter.
  if (status.ok()) status = LoadCounts(manifest);
  if (!status.ok()) storage->Clear().IgnoreError();
  return status;
}

absl::Status ReplayBuffer::State::LoadOfRows(const std::string& directory,
                                             const Manifest& manifest,
                                             const Saved& saved,
                                             const HeldDirectory& held) {
  if (saved.lanes == storage->lanes()) {
    return LoadOfRows(directory, manifest, saved, nullptr, held);
  }
  const MovedRows moved =
      MovedRows::Of(saved.lanes, storage->lanes(), storage->cursors());
  return LoadOfRows(directory, manifest, saved, &moved, held);
}

absl::Status ReplayBuffer::State::LoadOfRows(const std::string& directory,
                                             const Manifest& manifest,
                                             const Saved& saved,
                                             const MovedRows* moved,
                                             const HeldDirectory& held) {
  RILL_ASSIGN_OR_RETURN(const std::string sampler_state,
                        ReadState(directory, kSamplerFile));
  if (!saved.changed_sampler.empty()) {
    RILL_RETURN_IF_ERROR(
        sampler->LoadChangedState(sampler_state, saved.changed_sampler, moved));
  } else if (moved != nullptr) {
    RILL_RETURN_IF_ERROR(sampler->LoadMovedState(sampler_state, *moved));
  } else {
    RILL_RETURN_IF_ERROR(sampler->LoadState(sampler_state));
  }
  if (moved == nullptr && !saved.drops_ahead) {
    RILL_RETURN_IF_ERROR(LoadAhead(directory, manifest));
  }
  RILL_RETURN_IF_ERROR(
      LoadWriter(directory, manifest, saved.changed_writer, &writes->writer()));
  RILL_RETURN_IF_ERROR(
      transforms->CheckRows(storage->spec(), /*is_stored=*/true));
  return held.IsStillThere() ? absl::OkStatus() : Replaced(directory);
}

absl::Status ReplayBuffer::State::LoadPosition(const std::string& directory,
                                               const Manifest& manifest,
                                               const Saved& saved,
                                               bool accept_newer,
                                               const HeldDirectory& held) {
  RILL_ASSIGN_OR_RETURN(const std::string position,
                        ReadState(directory, kPositionFile));
  const auto accept = [&](const PositionRows& rows) {
    if (rows.missing == 0) {
      return LoadOfRows(directory, manifest, saved, nullptr, held);
    }
    MovedRows kept{.from = storage->lanes()};
    for (const SlotRange& range : rows.kept) {
      kept.ranges.push_back({range.first, range.first, range.count});
    }
    return LoadOfRows(directory, manifest, saved, &kept, held);
  };
  RILL_RETURN_IF_ERROR(storage->LoadPosition(position, accept_newer, accept))
      << "ReplayBuffer::Open: \"" << directory << "\"";
  return LoadCounts(manifest);
}

absl::Status ReplayBuffer::State::LoadCounts(const Manifest& manifest) {
  RateLimiter* const limiter = writes->rate_limiter();
  if (limiter == nullptr || !manifest.fields.contains("rate_limiter_inserts")) {
    return absl::OkStatus();
  }
  RateLimiter::State counts;
  RILL_ASSIGN_OR_RETURN(counts.inserts, manifest.Int("rate_limiter_inserts"));
  RILL_ASSIGN_OR_RETURN(counts.samples, manifest.Int("rate_limiter_samples"));
  RILL_ASSIGN_OR_RETURN(counts.deletes, manifest.Int("rate_limiter_deletes"));
  return limiter->LoadState(counts);
}

}  // namespace rill
