// SPDX-License-Identifier: Apache-2.0
// The part of BufferCheckpoint that writes.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/parts/buffer_checkpoint.h"
#include "rill/replay/parts/checkpoint_fields.h"
#include "rill/replay/rate_limiter.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

namespace {

// Where it has none, nothing.
absl::Status SaveWriter(const std::string& directory, const Writer& writer,
                        Manifest* manifest) {
  RILL_ASSIGN_OR_RETURN(const std::string state, writer.SaveState());
  if (state.empty()) return absl::OkStatus();
  manifest->fields[std::string(kWriterField)] = std::string(writer.name());
  return WriteFileAtomically(JoinPath(directory, kWriterFile), state);
}

}  // namespace

absl::Status BufferCheckpoint::SaveTo(const std::string& directory,
                                      Rows rows) const {
  // The pause stops this buffer's writes, not those of others on the storage.
  // Equal counts of events say that rows and sampler are of one moment.
  const int64_t writes_before = parts_.writes->events();
  Manifest manifest;
  manifest.kind = std::string(kKind);
  FileSums sums;
  if (rows == Rows::kInPlace) {
    manifest.version = kPositionVersion;
    manifest.fields[std::string(kRowsField)] = std::string(kInPlaceRows);
    RILL_ASSIGN_OR_RETURN(const std::string position,
                          parts_.storage->SavePosition());
    RILL_RETURN_IF_ERROR(
        WriteFileAtomically(JoinPath(directory, kPositionFile), position));
  } else if (rows == Rows::kShared) {
    manifest.version = kPartVersion;
    manifest.fields[std::string(kRowsField)] = std::string(kSharedRows);
  } else {
    manifest.version = kVersion;
    RILL_RETURN_IF_ERROR(
        parts_.storage->Save(JoinPath(directory, kStorageDirectory)));
    // The storage has checksums of its own, so its files are not read again.
    sums = StorageSums(directory);
  }
  RILL_ASSIGN_OR_RETURN(const std::string sampler_state,
                        parts_.sampler->SaveState());
  if (parts_.writes->events() != writes_before) {
    return FailedPrecondition(
        "ReplayBuffer::Save: events of the storage during the save: got ",
        parts_.writes->events() - writes_before,
        ", want 0; stop the writers of other buffers on it first");
  }
  RILL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(directory, kSamplerFile), sampler_state));
  manifest.fields["batch_number"] =
      absl::StrCat(parts_.samples->batch_number());
  manifest.fields["sampler"] = std::string(parts_.sampler->name());
  RILL_RETURN_IF_ERROR(
      SaveWriter(directory, parts_.writes->writer(), &manifest));
  if (parts_.unit != nullptr) {
    manifest.fields[std::string(kUnitField)] = std::string(parts_.unit->name());
  }
  manifest.SetInt("lanes", parts_.storage->lanes().count);
  manifest.SetInt("capacity", parts_.storage->capacity());
  manifest.fields["seed"] = absl::StrCat(parts_.samples->seed());
  // Batches ahead are saved as they are: rows they came from may be overwritten
  // by the time of an Open. Workers need no pause, so they finish meanwhile.
  parts_.samples->AwaitMade();
  RILL_RETURN_IF_ERROR(SaveAhead(directory, &manifest));
  if (const RateLimiter* const limiter = parts_.writes->rate_limiter();
      limiter != nullptr) {
    RILL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, kLimiterFile),
                                             limiter->SaveState()));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict learned,
                        parts_.transforms->SaveState());
  if (!learned.empty()) {
    RILL_RETURN_IF_ERROR(SaveMemmapDirectory(
        learned, JoinPath(directory, kTransformsDirectory)));
  }
  const std::vector<std::string> names = parts_.transforms->Names();
  manifest.SetInt("transforms", static_cast<int64_t>(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    manifest.fields[TransformField(static_cast<int64_t>(i))] = names[i];
  }
  SaveOptions(PartOptions(), &manifest);
  return WriteManifest(manifest, directory, &sums);
}

absl::Status BufferCheckpoint::SaveAhead(const std::string& directory,
                                         Manifest* manifest) const {
  using Made = SampleQueue::Made;
  RILL_ASSIGN_OR_RETURN(const std::vector<Made> ahead,
                        parts_.samples->SaveAhead());
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

absl::Status BufferCheckpoint::Replace(absl::string_view caller,
                                       const std::string& directory,
                                       Rows rows) const {
  const Writer& writer = parts_.writes->writer();
  if (rows == Rows::kInPlace && !writer.traits().keeps_order) {
    return FailedPrecondition(
        caller, ": writer: got ", writer.name(),
        ", want one that appends: what is written in place of other rows ",
        "is not undone; use Save");
  }
  RILL_RETURN_IF_ERROR(CheckReplaceable(caller, directory, kManifestFile));
  return ReplaceDirectory(directory, [&](const std::string& temporary) {
    return SaveTo(temporary, rows);
  });
}

OptionValues BufferCheckpoint::PartOptions() const {
  OptionValues values;
  values.Part("sampler", parts_.sampler->name(),
              parts_.sampler->traits().options);
  if (parts_.unit != nullptr) {
    values.Part("unit_transform", parts_.unit->name(),
                parts_.unit->traits().options);
  }
  parts_.transforms->AddOptions(&values);
  values.Part("writer", parts_.writes->writer().name(),
              parts_.writes->writer().traits().options);
  return values;
}

}  // namespace rill::replay_internal
