// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_PARTS_CHECKPOINT_FIELDS_H_
#define RILL_REPLAY_PARTS_CHECKPOINT_FIELDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/formats/manifest.h"

// Names of files and of the manifest's fields in a saved replay buffer:
// docs/formats/replay_buffer.md.
namespace rill::replay_internal {

inline constexpr absl::string_view kKind = "replay_buffer";
inline constexpr int64_t kVersion = 1;
inline constexpr int64_t kPositionVersion = 2;  // Where rows are in place.
inline constexpr absl::string_view kRowsField = "rows";
inline constexpr absl::string_view kInPlaceRows = "in_place";
inline constexpr int64_t kPartVersion = 3;  // Where they are saved elsewhere.
inline constexpr absl::string_view kSharedRows = "shared";
inline constexpr absl::string_view kPositionFile = "storage.position";
inline constexpr absl::string_view kStorageDirectory = "storage";
inline constexpr absl::string_view kSamplerFile = "sampler.state";
inline constexpr absl::string_view kWriterFile = "writer.state";
inline constexpr absl::string_view kWriterField = "writer";
inline constexpr absl::string_view kLimiterFile = "limiter.state";
inline constexpr absl::string_view kTransformsDirectory = "transforms";
inline constexpr absl::string_view kAheadDirectory = "ahead";
inline constexpr absl::string_view kUnitField = "unit_transform";

inline std::string TransformField(int64_t i) {
  return absl::StrCat("transform_", i);
}

inline std::string AheadField(int64_t i, absl::string_view what) {
  return absl::StrCat("ahead_", i, "_", what);
}

// The sums of its files in the storage's own manifest, so that another manifest
// need not read them; none where it has none.
inline FileSums StorageSums(const std::string& directory) {
  FileSums sums;
  const auto stored = ReadFileSums(JoinPath(directory, kStorageDirectory));
  if (!stored.ok()) return sums;
  for (const auto& [path, sum] : *stored) {
    sums[JoinPath(kStorageDirectory, path)] = sum;
  }
  return sums;
}

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_PARTS_CHECKPOINT_FIELDS_H_
