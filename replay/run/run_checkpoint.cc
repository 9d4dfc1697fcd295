// SPDX-License-Identifier: Apache-2.0
// All buffers are paused together, so that storages, buffers and dictionaries
// are of one moment. Each storage is saved once, then every buffer without its
// rows, then the dictionaries. The manifest comes last, with checksums of all
// that was written.
#include "rill/replay/run/run_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/file.h"
#include "rill/base/held_directory.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/replay/parts/buffer_checkpoint.h"
#include "rill/replay/replay_buffer_state.h"

namespace rill {
namespace {

constexpr absl::string_view kKind = "run_checkpoint";
// 1: each state is a memmap directory.
constexpr int64_t kVersion = 2;
constexpr char kStatesFile[] = "states.bin";
constexpr absl::string_view kSave = "RunCheckpoint::Save";
constexpr absl::string_view kOpen = "RunCheckpoint::Open";

std::string BufferField(int64_t i) { return absl::StrCat("buffer_", i); }
std::string StorageField(int64_t i) {
  return absl::StrCat("buffer_", i, "_storage");
}
std::string StateField(int64_t i) { return absl::StrCat("state_", i); }
std::string BufferPath(int64_t i) { return absl::StrCat("buffers/", i); }
std::string StoragePath(int64_t i) { return absl::StrCat("storages/", i); }
std::string StatePath(int64_t i) { return absl::StrCat("states/", i); }

// Numbers of what comes more than once, in the order in which it comes.
class Numbers {
 public:
  int64_t Of(const Storage* storage) {
    const auto found = std::find(storages_.begin(), storages_.end(), storage);
    if (found != storages_.end()) return found - storages_.begin();
    storages_.push_back(storage);
    return static_cast<int64_t>(storages_.size()) - 1;
  }
  const std::vector<const Storage*>& storages() const { return storages_; }

 private:
  std::vector<const Storage*> storages_;
};

// Sums of the files of a part from its own manifest, by the paths of the whole.
void AddSums(const std::string& directory, const std::string& part,
             FileSums* sums) {
  const auto stored = ReadFileSums(JoinPath(directory, part));
  if (!stored.ok()) return;
  for (const auto& [path, sum] : *stored) (*sums)[JoinPath(part, path)] = sum;
}

// All in one file: a sync or two in all, where a directory takes some a leaf.
// What that form does not take (names, many entries) are directories.
absl::Status SaveStates(const std::string& directory,
                        const std::map<std::string, TensorDict>& states) {
  if (states.empty()) return absl::OkStatus();
  TensorDict all;
  int64_t i = 0;
  for (const auto& [name, state] : states) {
    RILL_RETURN_IF_ERROR(all.Set(absl::StrCat(i++), state));
  }
  const absl::Status saved =
      SaveConsolidated(all, JoinPath(directory, kStatesFile));
  if (!absl::IsInvalidArgument(saved)) return saved;
  RILL_RETURN_IF_ERROR(CreateDirectories(JoinPath(directory, "states")));
  i = 0;
  for (const auto& [name, state] : states) {
    RILL_RETURN_IF_ERROR(
        SaveMemmapDirectory(state, JoinPath(directory, StatePath(i++))))
        << "state \"" << name << "\"";
  }
  return absl::OkStatus();
}

// `files` are all that the directory has, and are checked.
absl::StatusOr<std::vector<TensorDict>> LoadStates(const std::string& directory,
                                                   int64_t count,
                                                   const FileSums& files) {
  const LoadMemmapOptions copy = {.mode = LoadMemmapOptions::Mode::kCopy};
  const bool is_one = files.contains(kStatesFile);
  TensorDict all;
  if (is_one) {
    RILL_ASSIGN_OR_RETURN(
        all, LoadConsolidated(JoinPath(directory, kStatesFile), copy));
  }
  std::vector<TensorDict> states;
  for (int64_t i = 0; i < count; ++i) {
    auto state =
        is_one ? all.GetDict(absl::StrCat(i))
               : LoadMemmapDirectory(JoinPath(directory, StatePath(i)), copy);
    RILL_RETURN_IF_ERROR(state.status()) << kOpen;
    states.push_back(*std::move(state));
  }
  return states;
}

absl::StatusOr<std::vector<std::string>> Names(
    const Manifest& manifest, const std::string& count_field,
    const std::function<std::string(int64_t)>& field) {
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int(count_field));
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(names.emplace_back(), manifest.Text(field(i)));
  }
  return names;
}

// `saved` is what was written, in the order of a map.
absl::Status CheckNames(absl::string_view what,
                        const std::vector<std::string>& saved,
                        const std::set<std::string>& given) {
  std::vector<std::string> missing;
  for (const std::string& name : saved) {
    if (!given.contains(name))
      missing.push_back(absl::StrCat("\"", name, "\""));
  }
  std::vector<std::string> extra;
  for (const std::string& name : given) {
    if (std::find(saved.begin(), saved.end(), name) == saved.end()) {
      extra.push_back(absl::StrCat("\"", name, "\""));
    }
  }
  if (missing.empty() && extra.empty()) return absl::OkStatus();
  std::vector<std::string> quoted;
  for (const std::string& name : saved) {
    quoted.push_back(absl::StrCat("\"", name, "\""));
  }
  return FailedPrecondition(
      kOpen, ": ", what, ": got [", absl::StrJoin(quoted, ", "),
      "] in the directory, want those of the options: missing there [",
      absl::StrJoin(extra, ", "), "], not in the options [",
      absl::StrJoin(missing, ", "), "]");
}

}  // namespace

// --- Save --------------------------------------------------------------------

absl::Status RunCheckpoint::SaveTo(const std::string& directory,
                                   const Contents& contents) {
  Manifest manifest{.kind = std::string(kKind), .version = kVersion};
  FileSums sums;
  Numbers numbers;
  std::vector<int64_t> writes;
  for (const auto& [name, buffer] : contents.buffers) {
    // Each storage has one number, however many buffers share it.
    numbers.Of(buffer->state_->parts->storage.get());
    writes.push_back(buffer->state_->parts->writes->events());
  }
  const auto& storages = numbers.storages();
  manifest.SetInt("storages", static_cast<int64_t>(storages.size()));
  RILL_RETURN_IF_ERROR(CreateDirectories(JoinPath(directory, "storages")));
  for (size_t i = 0; i < storages.size(); ++i) {
    const std::string path = StoragePath(static_cast<int64_t>(i));
    RILL_RETURN_IF_ERROR(storages[i]->Save(JoinPath(directory, path))) << kSave;
    AddSums(directory, path, &sums);
  }
  manifest.SetInt("buffers", static_cast<int64_t>(contents.buffers.size()));
  int64_t i = 0;
  for (const auto& [name, buffer] : contents.buffers) {
    const std::string path = JoinPath(directory, BufferPath(i));
    RILL_RETURN_IF_ERROR(CreateDirectories(path));
    ReplayBuffer::State& state = *buffer->state_;
    RILL_RETURN_IF_ERROR(state.parts->checkpoint->SaveTo(
        path, replay_internal::BufferCheckpoint::Rows::kShared))
        << kSave << ": buffer \"" << name << "\"";
    AddSums(directory, BufferPath(i), &sums);
    manifest.fields[BufferField(i)] = name;
    manifest.SetInt(StorageField(i), numbers.Of(state.parts->storage.get()));
    ++i;
  }
  manifest.SetInt("states", static_cast<int64_t>(contents.states.size()));
  RILL_RETURN_IF_ERROR(SaveStates(directory, contents.states)) << kSave;
  i = 0;
  for (const auto& [name, state] : contents.states) {
    manifest.fields[StateField(i++)] = name;
  }
  // A writer that is none of the buffers may have written. Equal counts of
  // events say that all parts are of one moment.
  auto before = writes.begin();
  for (const auto& [name, buffer] : contents.buffers) {
    const int64_t events = buffer->state_->parts->writes->events() - *before++;
    if (events == 0) continue;
    return FailedPrecondition(
        kSave, ": events of the storage of buffer \"", name,
        "\" during the save: got ", events,
        ", want 0; stop its other writers first, or name their buffers");
  }
  return WriteManifest(manifest, directory, &sums);
}

absl::Status RunCheckpoint::Save(const std::string& directory,
                                 const Contents& contents) {
  if (contents.buffers.empty() && contents.states.empty()) {
    return InvalidArgument(kSave,
                           ": buffers and states: got none, want one at least");
  }
  // Several are always locked in the order of their addresses, so savers never
  // wait for each other in a circle. A write that waits for another buffer's
  // gather goes on meanwhile, as workers need no pause.
  std::map<ReplayBuffer::State*, std::string, std::less<>> states;
  for (const auto& [name, buffer] : contents.buffers) {
    if (buffer == nullptr) {
      return InvalidArgument(kSave, ": buffer \"", name,
                             "\": got null, want a buffer");
    }
    const auto [other, is_new] = states.emplace(buffer->state_.get(), name);
    if (is_new) continue;
    return InvalidArgument(kSave, ": buffer \"", name, "\": got that of \"",
                           other->second, "\", want each once");
  }
  std::vector<std::unique_ptr<absl::MutexLock>> pauses;
  for (const auto& [state, name] : states) {
    pauses.push_back(std::make_unique<absl::MutexLock>(&state->pause_mutex));
  }
  RILL_RETURN_IF_ERROR(CheckReplaceable(kSave, directory, kManifestFile));
  return ReplaceDirectory(directory, [&](const std::string& temporary) {
    return SaveTo(temporary, contents);
  });
}

// --- Open --------------------------------------------------------------------

struct RunCheckpoint::Part {
  std::string name;
  std::string directory;
  int64_t storage = 0;  // Its number.
  Manifest manifest = {};
  std::unique_ptr<ReplayBuffer> buffer = nullptr;
  replay_internal::BufferCheckpoint::Saved saved = {};
  std::vector<OptionChange> changes = {};
};

absl::StatusOr<std::vector<RunCheckpoint::Part>> RunCheckpoint::FindParts(
    const std::string& directory, const Manifest& manifest,
    const OpenOptions& options) {
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        Names(manifest, "buffers", BufferField));
  std::set<std::string> given;
  for (const auto& [name, buffer] : options.buffers) given.insert(name);
  RILL_RETURN_IF_ERROR(CheckNames("buffers", names, given));
  std::vector<Part> parts;
  std::vector<const Storage*> storages;  // Of the options, by number.
  for (const std::string& name : names) {
    const auto number = static_cast<int64_t>(parts.size());
    Part part = {.name = name,
                 .directory = JoinPath(directory, BufferPath(number))};
    RILL_ASSIGN_OR_RETURN(part.storage, manifest.Int(StorageField(number)));
    const auto count = static_cast<int64_t>(storages.size());
    if (part.storage < 0 || part.storage > count) {
      return DataLoss(kOpen, ": field \"", StorageField(number), "\": got ",
                      part.storage, ", want [0, ", count, "]");
    }
    const Storage* const storage = options.buffers.at(name).storage.get();
    const int64_t same =
        std::find(storages.begin(), storages.end(), storage) - storages.begin();
    // Storages must be shared as they were: else rows would be loaded twice
    // into one, or once into two.
    if (same != part.storage) {
      // One that comes first, or one that shares where it did not, or not with
      // that one.
      const bool shares_here = same < count;
      const int64_t other = shares_here ? same : part.storage;
      const auto first = std::find_if(
          parts.begin(), parts.end(),
          [other](const Part& each) { return each.storage == other; });
      return FailedPrecondition(
          kOpen, ": storages of buffers \"", first->name, "\" and \"", name,
          "\": got ", shares_here ? "two" : "one", " in the directory, want ",
          shares_here ? "one" : "two", " as in the options");
    }
    if (same == count) storages.push_back(storage);
    parts.push_back(std::move(part));
  }
  return parts;
}

absl::Status RunCheckpoint::Create(const OpenOptions& options,
                                   ReplayBuffer::Options of_buffer,
                                   Part* part) {
  // The whole directory's manifest has answered for those files.
  RILL_ASSIGN_OR_RETURN(FileSums sums, ReadFileSums(part->directory));
  RILL_ASSIGN_OR_RETURN(part->manifest,
                        replay_internal::BufferCheckpoint::ReadSave(
                            part->directory, true, &sums));
  RILL_ASSIGN_OR_RETURN(
      of_buffer.seed,
      replay_internal::BufferCheckpoint::SeedOf(part->manifest));
  RILL_ASSIGN_OR_RETURN(part->buffer,
                        ReplayBuffer::Create(std::move(of_buffer)));
  RILL_ASSIGN_OR_RETURN(
      part->saved, part->buffer->state_->parts->checkpoint->Prepare(
                       part->directory, part->manifest,
                       {.accept_other_capacity = options.accept_other_capacity,
                        .accept_options = options.accept_options,
                        .changed_options = &part->changes}));
  if (options.discard_rows) return absl::OkStatus();
  return part->buffer->state_->parts->checkpoint->CheckHasNoRows(part->saved);
}

absl::Status RunCheckpoint::LoadRows(const std::string& directory,
                                     const OpenOptions& options,
                                     const HeldDirectory& held,
                                     std::vector<Part>* parts) {
  // Rows of all storages first, since a sampler's state is checked against
  // them.
  std::set<int64_t> loaded;
  for (const Part& part : *parts) {
    if (!loaded.insert(part.storage).second) continue;
    RILL_RETURN_IF_ERROR(part.buffer->state_->parts->storage->Load(
        JoinPath(directory, StoragePath(part.storage)),
        {.accept_other_capacity = options.accept_other_capacity}))
        << kOpen << ": buffer \"" << part.name << "\"";
  }
  for (const Part& part : *parts) {
    ReplayBuffer::State& state = *part.buffer->state_;
    RILL_RETURN_IF_ERROR(state.parts->checkpoint->LoadOfRows(
        part.directory, part.manifest, part.saved, held))
        << kOpen << ": buffer \"" << part.name << "\"";
  }
  // Last: others may share a limiter.
  for (const Part& part : *parts) {
    RILL_RETURN_IF_ERROR(
        part.buffer->state_->parts->checkpoint->LoadCounts(part.saved))
        << kOpen << ": buffer \"" << part.name << "\"";
  }
  return absl::OkStatus();
}

absl::StatusOr<RunCheckpoint::Opened> RunCheckpoint::OpenHeld(
    const std::string& directory, OpenOptions options,
    const HeldDirectory& held) {
  FileSums sums;  // Storage::Load checks theirs.
  const absl::StatusOr<FileSums> files = ReadFileSums(directory);
  RILL_RETURN_IF_ERROR(files.status()) << kOpen;
  for (int64_t i = 0; files->contains(JoinPath(StoragePath(i), kManifestFile));
       ++i) {
    AddSums(directory, StoragePath(i), &sums);
  }
  RILL_ASSIGN_OR_RETURN(const Manifest manifest,
                        ReadManifest(directory, kKind, kVersion, &sums));
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> states,
                        Names(manifest, "states", StateField));
  RILL_RETURN_IF_ERROR(CheckNames(
      "states", states, {options.states.begin(), options.states.end()}));
  RILL_ASSIGN_OR_RETURN(std::vector<Part> parts,
                        FindParts(directory, manifest, options));
  Opened opened;
  RILL_ASSIGN_OR_RETURN(
      const std::vector<TensorDict> loaded,
      LoadStates(directory, static_cast<int64_t>(states.size()), *files));
  for (size_t i = 0; i < states.size(); ++i) {
    opened.states[states[i]] = loaded[i];
  }
  for (Part& part : parts) {
    RILL_RETURN_IF_ERROR(
        Create(options, std::move(options.buffers[part.name]), &part))
        << kOpen << ": buffer \"" << part.name << "\"";
  }
  int64_t discarded = 0;
  for (const Part& part : parts) {
    Storage& storage = *part.buffer->state_->parts->storage;
    if (!options.discard_rows || storage.size() == 0) continue;
    discarded += storage.size();
    RILL_RETURN_IF_ERROR(storage.Clear())
        << kOpen << ": buffer \"" << part.name << "\"";
  }
  if (const absl::Status status = LoadRows(directory, options, held, &parts);
      !status.ok()) {
    // Rows without all of their states must not stay.
    for (const Part& part : parts) {
      part.buffer->state_->parts->storage->Clear().IgnoreError();
    }
    if (discarded == 0) return status;
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), "; the ", discarded,
                     " rows that storages held before are discarded"));
  }
  for (Part& part : parts) {
    if (!part.changes.empty()) {
      opened.changed_options[part.name] = std::move(part.changes);
    }
    opened.buffers[part.name] = std::move(part.buffer);
  }
  return opened;
}

absl::StatusOr<RunCheckpoint::Opened> RunCheckpoint::Open(
    const std::string& directory, OpenOptions options) {
  const HeldDirectory held(directory);
  absl::StatusOr<Opened> opened = OpenHeld(directory, std::move(options), held);
  if (opened.ok() || held.IsStillThere()) return opened;
  return DataLoss(
      kOpen, ": \"", directory,
      "\": got another save in its place while it was read, want one that "
      "stays so long; open it again");
}

}  // namespace rill
