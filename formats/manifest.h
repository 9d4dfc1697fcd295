// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MANIFEST_H_
#define RILL_FORMATS_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill {

// Kind and files of a saved directory: "rill.json" at its top, written last.
// Lists every file below with size and CRC32C, so that a truncated or changed
// file is found before its content is believed. docs/formats/manifest.md.
//
// Thread-safety: thread-compatible.
//
// Example (ManifestTest.Example runs it):
//   Manifest manifest{.kind = "my_checkpoint"};
//   manifest.SetInt("step", 70);
//   RILL_RETURN_IF_ERROR(WriteManifest(manifest, directory));
//   RILL_ASSIGN_OR_RETURN(Manifest read,
//                         ReadManifest(directory, "my_checkpoint", 1));
struct Manifest {
  std::string kind;     // "replay_buffer", "storage", "dqn_checkpoint", ...
  int64_t version = 1;  // Of that kind's layout.
  // Small values of the kind's own: numbers, flags, names. Kept as text.
  std::map<std::string, std::string> fields = {};

  // Field access with statuses: DATA_LOSS where missing or not a number.
  absl::StatusOr<std::string> Text(const std::string& name) const;
  absl::StatusOr<int64_t> Int(const std::string& name) const;
  void SetInt(const std::string& name, int64_t value);
};

inline constexpr char kManifestFile[] = "rill.json";

// Checks all files below `directory` into the manifest and writes it there.
// INVALID_ARGUMENT where a text is not UTF-8, or something below is neither a
// file nor a directory.
absl::Status WriteManifest(const Manifest& manifest,
                           const std::string& directory);

// The entry of a file in a manifest, by its path below the directory.
struct FileSum {
  int64_t bytes = 0;
  uint32_t crc32c = 0;
  friend bool operator==(const FileSum&, const FileSum&) = default;
};
using FileSums = std::map<std::string, FileSum>;

// The same where the sums of some files are known: those are not read, but
// where one is of another size. Afterwards `sums` has all of them.
absl::Status WriteManifest(const Manifest& manifest,
                           const std::string& directory, FileSums* sums);

// The sums that the manifest lists, of any kind and version; the files are not
// looked at. Errors as ReadManifest.
absl::StatusOr<FileSums> ReadFileSums(const std::string& directory);

// The same without a look at the files below, of a directory whose files go on
// changing: the manifest lists none.
absl::Status WriteManifestAlone(const Manifest& manifest,
                                const std::string& directory);

// Reads the manifest and checks kind, version (at most `max_version`) and every
// file's size and checksum. NOT_FOUND: no manifest. FAILED_PRECONDITION:
// another kind or a newer version. DATA_LOSS: missing, longer, shorter or
// changed file; names it with both sides.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      absl::string_view kind,
                                      int64_t max_version);

// The same where who gives `sums` answers for those files: where the manifest
// lists the same sum they are not read, only their size is looked at.
// Afterwards `sums` has what the manifest lists.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      absl::string_view kind,
                                      int64_t max_version, FileSums* sums);

}  // namespace rill

#endif  // RILL_FORMATS_MANIFEST_H_
