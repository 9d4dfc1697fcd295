// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/saved.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/tdz_archive.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tools/programs/inspect/lenient_manifest.h"

namespace rill::inspect {
namespace {

constexpr char kMetaFile[] = "meta.json";
constexpr char kTorchRlFile[] = "buffer_metadata.json";
constexpr char kTorchRlRows[] = "storage/storage_metadata.json";
constexpr int kMaxDepth = 8;  // Of directories in one of Rill's.

absl::StatusOr<Saved> OpenAt(const std::string& path, int depth);

bool IsSaved(const std::string& path) {
  if (!IsDirectory(path)) {
    const absl::StatusOr<Form> form = FormOf(path);
    return form.ok() && *form == Form::kState;
  }
  return PathExists(JoinPath(path, kManifestFile)) ||
         PathExists(JoinPath(path, kMetaFile)) ||
         PathExists(JoinPath(path, kTorchRlFile));
}

// Lists the files below one of these directories, in `below` and deeper, and
// where `opens` its parts. Files may go while they are listed.
absl::Status ListParts(const std::string& top, const std::string& below,
                       int depth, bool opens, Saved* saved) {
  const std::string directory = below.empty() ? top : JoinPath(top, below);
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string part = below.empty() ? name : JoinPath(below, name);
    const std::string path = JoinPath(top, part);
    std::error_code ignored;
    // A link may lead out of the directory, or around in it.
    if (std::filesystem::is_symlink(path, ignored)) continue;
    const bool is_file = !IsDirectory(path);
    if (!is_file && depth >= kMaxDepth) {
      return InvalidArgument("inspect: \"", path, "\": got more than ",
                             kMaxDepth,
                             " directories in one another, want at most that");
    }
    const bool may_open = !is_file || absl::EndsWith(name, ".state");
    if (opens && may_open && IsSaved(path)) {
      absl::StatusOr<Saved> opened = OpenAt(path, depth + 1);
      if (opened.ok()) {
        saved->parts[part] = *std::move(opened);
      } else {
        saved->damage.push_back(std::string(opened.status().message()));
      }
    } else if (is_file) {
      if (part == kManifestFile) continue;
      const absl::StatusOr<int64_t> bytes = FileSize(path);
      // A file that went meanwhile is left out.
      if (bytes.ok()) saved->files[part] = *bytes;
    } else {
      RILL_RETURN_IF_ERROR(ListParts(top, part, depth + 1, opens, saved));
    }
  }
  return absl::OkStatus();
}

absl::Status Unknown(const std::string& path, absl::string_view got) {
  return InvalidArgument(
      "inspect: \"", path, "\": got ", got,
      ", want a memmap directory (with meta.json), one of Rill's (with "
      "rill.json), a replay buffer of TorchRL's (with buffer_metadata.json), a "
      ".tdz archive, a consolidated file or a saved state");
}

absl::StatusOr<Form> FormOfFile(const std::string& path) {
  RILL_ASSIGN_OR_RETURN(const int64_t bytes, FileSize(path));
  std::ifstream file(path, std::ios::binary);
  // A .tdz begins as any ZIP file does. A consolidated file ends with its JSON
  // and the length of that, 8 bytes, little-endian.
  char head[8] = {};
  char tail[9] = {};  // The last byte of a JSON, and how long it is.
  file.read(head, sizeof(head));
  const absl::string_view begin(head, sizeof(head));
  if (SavedState::IsSavedState(begin)) return Form::kState;
  file.clear();
  file.seekg(-static_cast<int64_t>(sizeof(tail)), std::ios::end);
  file.read(tail, sizeof(tail));
  uint64_t json_bytes = 0;
  for (int i = 8; i > 0; --i) {
    json_bytes = json_bytes << 8 | static_cast<unsigned char>(tail[i]);
  }
  if (file.good() && tail[0] == '}' && bytes > 8 &&
      json_bytes <= static_cast<uint64_t>(bytes) - 8) {
    return Form::kConsolidated;
  }
  if (absl::StartsWith(begin, "PK\x03\x04")) return Form::kTdz;
  return Unknown(path, "a file of another kind, or cut short");
}

// A dictionary, or else a lazy stack.
absl::Status Load(
    const std::string& path,
    absl::StatusOr<TensorDict> (*load_dict)(const std::string&,
                                            const LoadMemmapOptions&),
    absl::StatusOr<LazyStack> (*load_stack)(const std::string&,
                                            const LoadMemmapOptions&),
    Saved* saved) {
  LoadMemmapOptions options;
  // With this, what cannot be loaded is listed and does not fail the rest.
  options.refused = &saved->refused;
  absl::StatusOr<TensorDict> dict = load_dict(path, options);
  if (dict.ok()) {
    saved->dict = *std::move(dict);
    return absl::OkStatus();
  }
  // INVALID_ARGUMENT is also what a dictionary's loader says of a lazy stack.
  if (!absl::IsInvalidArgument(dict.status())) return dict.status();
  saved->refused.clear();
  absl::StatusOr<LazyStack> stack = load_stack(path, options);
  if (stack.ok()) {
    saved->stack = *std::move(stack);
    return absl::OkStatus();
  }
  // A lazy stack it was, of what cannot be loaded.
  const bool is_stack =
      absl::IsDataLoss(stack.status()) || !saved->refused.empty();
  return is_stack ? stack.status() : dict.status();
}

absl::StatusOr<Saved> OpenAt(const std::string& path, int depth) {
  Saved saved;
  absl::StatusOr<Form> form = FormOf(path);
  // One that is broken: the loader says how.
  if (absl::IsInvalidArgument(form.status()) && absl::EndsWith(path, ".tdz")) {
    form = Form::kTdz;
  }
  RILL_ASSIGN_OR_RETURN(saved.form, form);
  switch (saved.form) {
    case Form::kDirectory:
      RILL_RETURN_IF_ERROR(
          Load(path, LoadMemmapDirectory, LoadMemmapLazyStack, &saved));
      break;
    case Form::kTdz:
      RILL_RETURN_IF_ERROR(Load(path, LoadTdz, LoadTdzLazyStack, &saved));
      break;
    case Form::kConsolidated:
      RILL_RETURN_IF_ERROR(
          Load(path, LoadConsolidated, LoadConsolidatedLazyStack, &saved));
      break;
    case Form::kState: {
      RILL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
      RILL_ASSIGN_OR_RETURN(const SavedState state, SavedState::Decode(bytes));
      RILL_ASSIGN_OR_RETURN(saved.dict, ToDict(state));
      break;
    }
    case Form::kRill:
      saved.manifest = ReadLenientManifest(path, &saved.damage);
      RILL_RETURN_IF_ERROR(ListParts(path, "", depth, /*opens=*/true, &saved));
      break;
    case Form::kTorchRl: {
      absl::StatusOr<TorchRlReplayBuffer> buffer =
          ReadTorchRlReplayBuffer(path);
      if (buffer.ok()) {
        saved.dict = buffer->rows;
        saved.refused = buffer->refused;
        saved.torchrl = *std::move(buffer);
      } else {
        // Its files are shown by name and size instead.
        saved.damage.push_back(std::string(buffer.status().message()));
        RILL_RETURN_IF_ERROR(
            ListParts(path, "", depth, /*opens=*/false, &saved));
      }
      break;
    }
  }
  return saved;
}

}  // namespace

absl::string_view FormName(Form form) {
  switch (form) {
    case Form::kDirectory:
      return "memmap directory";
    case Form::kTdz:
      return ".tdz archive";
    case Form::kConsolidated:
      return "consolidated file";
    case Form::kState:
      return "saved state";
    case Form::kTorchRl:
      return "TorchRL replay buffer";
    case Form::kRill:
      break;
  }
  return "directory of Rill";
}

absl::StatusOr<Form> FormOf(const std::string& path) {
  if (!PathExists(path)) {
    return NotFound("inspect: \"", path,
                    "\": got nothing there, want a directory or file");
  }
  if (!IsDirectory(path)) return FormOfFile(path);
  if (PathExists(JoinPath(path, kManifestFile))) return Form::kRill;
  if (PathExists(JoinPath(path, kMetaFile))) return Form::kDirectory;
  if (PathExists(JoinPath(path, kTorchRlFile)) ||
      PathExists(JoinPath(path, kTorchRlRows))) {
    return Form::kTorchRl;
  }
  return Unknown(path, PathExists(JoinPath(path, "rill.lock"))
                           ? "a storage's directory that no row was written to"
                           : "a directory without any of their files");
}

std::string SamplerText(const TorchRlReplayBuffer& buffer) {
  if (const auto* of = std::get_if<TorchRlPriorities>(&buffer.sampler)) {
    return absl::StrCat("prioritized, alpha ", of->alpha, ", beta ", of->beta);
  }
  if (const auto* of = std::get_if<TorchRlEpoch>(&buffer.sampler)) {
    return absl::StrCat("without replacement, ",
                        of->remaining
                            ? absl::StrCat(of->remaining->num_elements())
                            : std::string("all"),
                        " of ", of->num_rows, " rows left");
  }
  if (const auto* of = std::get_if<TorchRlStaleness>(&buffer.sampler)) {
    return absl::StrCat("by staleness, learner at version ",
                        of->consumer_version);
  }
  return "random or slices";
}

bool Saved::is_damaged() const {
  return !damage.empty() ||
         std::any_of(parts.begin(), parts.end(),
                     [](const auto& part) { return part.second.is_damaged(); });
}

absl::StatusOr<Saved> OpenSaved(const std::string& path) {
  return OpenAt(path, /*depth=*/0);
}

}  // namespace rill::inspect
