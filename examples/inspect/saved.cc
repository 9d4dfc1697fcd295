// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/inspect/saved.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_directory.h"

namespace rill::inspect {
namespace {

constexpr char kMetaFile[] = "meta.json";
constexpr int kMaxDepth = 8;  // Of directories in one of Rill's.

absl::StatusOr<Saved> OpenAt(const std::string& path, int depth);

bool IsSaved(const std::string& directory) {
  return PathExists(JoinPath(directory, kManifestFile)) ||
         PathExists(JoinPath(directory, kMetaFile));
}

// What is below one of Rill's directories, in `below` and deeper.
absl::Status ListParts(const std::string& top, const std::string& below,
                       int depth, Saved* saved) {
  const std::string directory = below.empty() ? top : JoinPath(top, below);
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string part = below.empty() ? name : JoinPath(below, name);
    const std::string path = JoinPath(top, part);
    std::error_code ignored;
    if (std::filesystem::is_symlink(path, ignored)) continue;
    if (!IsDirectory(path)) {
      if (part == kManifestFile) continue;
      RILL_ASSIGN_OR_RETURN(saved->files[part], FileSize(path));
    } else if (depth >= kMaxDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("inspect: \"", path, "\": got more than ", kMaxDepth,
                       " directories in one another, want at most that"));
    } else if (IsSaved(path)) {
      RILL_ASSIGN_OR_RETURN(saved->parts[part], OpenAt(path, depth + 1));
    } else {
      RILL_RETURN_IF_ERROR(ListParts(top, part, depth + 1, saved));
    }
  }
  return absl::OkStatus();
}

absl::Status Unknown(const std::string& path, absl::string_view got) {
  return absl::InvalidArgumentError(absl::StrCat(
      "inspect: \"", path, "\": got ", got,
      ", want a memmap directory (with meta.json) or one of Rill's (with "
      "rill.json)"));
}

absl::StatusOr<Saved> OpenAt(const std::string& path, int depth) {
  Saved saved;
  if (!IsDirectory(path)) return Unknown(path, "a file of another kind");
  if (PathExists(JoinPath(path, kManifestFile))) {
    saved.form = Form::kRill;
    RILL_ASSIGN_OR_RETURN(saved.manifest, ReadAnyManifest(path));
    RILL_RETURN_IF_ERROR(ListParts(path, "", depth, &saved));
    return saved;
  }
  if (!PathExists(JoinPath(path, kMetaFile))) {
    return Unknown(path, "a directory without either file");
  }
  RILL_ASSIGN_OR_RETURN(saved.dict, LoadMemmapDirectory(path));
  return saved;
}

}  // namespace

absl::string_view FormName(Form form) {
  switch (form) {
    case Form::kDirectory:
      return "memmap directory";
    case Form::kRill:
      break;
  }
  return "directory of Rill";
}

absl::StatusOr<Saved> OpenSaved(const std::string& path) {
  if (!PathExists(path)) {
    return absl::NotFoundError(
        absl::StrCat("inspect: \"", path,
                     "\": got nothing there, want a directory or file"));
  }
  return OpenAt(path, /*depth=*/0);
}

}  // namespace rill::inspect
