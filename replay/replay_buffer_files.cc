// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer::Save and Open. docs/formats/replay_buffer.md has the files.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"

namespace rill {
namespace {

constexpr absl::string_view kKind = "replay_buffer";
constexpr int64_t kVersion = 1;
constexpr absl::string_view kStorageDirectory = "storage";
constexpr absl::string_view kSamplerFile = "sampler.state";
constexpr absl::string_view kTransformsDirectory = "transforms";

std::vector<std::string> NamesOf(const Compose& transforms) {
  std::vector<std::string> names;
  for (const auto& transform : transforms.transforms()) {
    names.emplace_back(transform->name());
  }
  return names;
}

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

// The directory is of a buffer like this one.
absl::Status CheckSame(const Manifest& manifest, const Lanes& lanes,
                       const Sampler& sampler, const Compose& transforms) {
  RILL_ASSIGN_OR_RETURN(const std::string name, manifest.Text("sampler"));
  if (name != sampler.name()) {
    return Mismatch("sampler", name, sampler.name());
  }
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("lanes"));
  if (count != lanes.count) {
    return Mismatch("lanes", absl::StrCat(count), absl::StrCat(lanes.count));
  }
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, manifest.Int("capacity"));
  if (capacity != lanes.num_slots()) {
    return Mismatch("capacity", absl::StrCat(capacity),
                    absl::StrCat(lanes.num_slots()));
  }
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> saved,
                        SavedTransforms(manifest));
  const std::vector<std::string> own = NamesOf(transforms);
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

absl::StatusOr<std::string> ReadSamplerState(const std::string& directory) {
  const std::string path = JoinPath(directory, kSamplerFile);
  if (PathExists(path)) return ReadFile(path);
  return absl::DataLossError(absl::StrCat("ReplayBuffer::Open: \"", path,
                                          "\": got none, want a file"));
}

}  // namespace

absl::Status ReplayBuffer::State::SaveTo(const std::string& directory) const {
  const int64_t writes_before = writes.count();
  RILL_RETURN_IF_ERROR(storage->Save(JoinPath(directory, kStorageDirectory)));
  RILL_ASSIGN_OR_RETURN(const std::string sampler_state, sampler->SaveState());
  if (writes.count() != writes_before) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ReplayBuffer::Save: events of the storage during the save: got ",
        writes.count() - writes_before,
        ", want 0; stop the writers of other buffers on it first"));
  }
  RILL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(directory, kSamplerFile), sampler_state));
  RILL_ASSIGN_OR_RETURN(const TensorDict learned, transforms->SaveState());
  if (!learned.empty()) {
    RILL_RETURN_IF_ERROR(SaveMemmapDirectory(
        learned, JoinPath(directory, kTransformsDirectory)));
  }
  Manifest manifest;
  manifest.kind = std::string(kKind);
  manifest.version = kVersion;
  manifest.fields["seed"] = absl::StrCat(seed);
  manifest.fields["batch_number"] = absl::StrCat(batch_number);
  manifest.fields["sampler"] = std::string(sampler->name());
  manifest.SetInt("lanes", storage->lanes().count);
  manifest.SetInt("capacity", storage->capacity());
  const std::vector<std::string> names = NamesOf(*transforms);
  manifest.SetInt("transforms", static_cast<int64_t>(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    manifest.fields[TransformField(static_cast<int64_t>(i))] = names[i];
  }
  return WriteManifest(manifest, directory);
}

absl::Status ReplayBuffer::Save(const std::string& directory) const {
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  RILL_RETURN_IF_ERROR(
      CheckReplaceable("ReplayBuffer::Save", directory, kManifestFile));
  return ReplaceDirectory(directory, [&state](const std::string& temporary)
                                         ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                           return state.SaveTo(temporary);
                                         });
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Open(
    const std::string& directory, Options options) {
  RILL_ASSIGN_OR_RETURN(const Manifest manifest,
                        ReadManifest(directory, kKind, kVersion));
  RILL_ASSIGN_OR_RETURN(options.seed, UnsignedField(manifest, "seed"));
  RILL_ASSIGN_OR_RETURN(const uint64_t batch_number,
                        UnsignedField(manifest, "batch_number"));
  RILL_ASSIGN_OR_RETURN(auto buffer, Create(std::move(options)));
  State& state = *buffer->state_;
  absl::MutexLock lock(&state.mutex);
  RILL_RETURN_IF_ERROR(CheckSame(manifest, state.storage->lanes(),
                                 *state.sampler, *state.transforms));
  if (state.storage->size() != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ReplayBuffer::Open: rows in Options::storage: got ",
        state.storage->size(), ", want 0; open into an empty storage"));
  }
  RILL_ASSIGN_OR_RETURN(const std::string sampler_state,
                        ReadSamplerState(directory));
  RILL_ASSIGN_OR_RETURN(const TensorDict learned, ReadTransforms(directory));
  RILL_RETURN_IF_ERROR(state.transforms->LoadState(learned))
      << "ReplayBuffer::Open: transforms";
  RILL_RETURN_IF_ERROR(
      state.storage->Load(JoinPath(directory, kStorageDirectory)));
  absl::Status status = state.sampler->LoadState(sampler_state);
  if (status.ok()) status = state.CheckForward(state.storage->spec());
  if (!status.ok()) {
    state.storage->Clear().IgnoreError();
    return status;
  }
  state.batch_number = batch_number;
  return buffer;
}

}  // namespace rill
