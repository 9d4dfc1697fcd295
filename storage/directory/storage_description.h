// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_STORAGE_DESCRIPTION_H_
#define RILL_STORAGE_DIRECTORY_STORAGE_DESCRIPTION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/formats/manifest.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/storage_layout.h"

namespace rill::storage_internal {

inline constexpr char kRecordFile[] = "rill.commit";

// The description of a storage directory in its rill.json:
// docs/formats/storage_directory.md.
struct StorageDescription {
  Lanes lanes;
  StorageLayout layout = StorageLayout::kRows;  // Never kAuto.
  StorageOrder order = StorageOrder::kLaneMajor;
  TensorDictSpec spec;
};

// The place of every byte in the rows' files.
absl::StatusOr<RowLayout> LayoutOf(const StorageDescription& description);

// A layout as rill.json, and back, believing nothing: DATA_LOSS, which starts
// with `caller` and names `path`, where fields are missing, out of bounds or do
// not fit together.
absl::StatusOr<Manifest> Describe(const RowLayout& layout, const Lanes& lanes);
absl::StatusOr<StorageDescription> ParseDescription(absl::string_view caller,
                                                    const std::string& path,
                                                    const Manifest& manifest);

// NOT_FOUND where a directory has no rill.json.
absl::Status CheckDescriptionExists(absl::string_view caller,
                                    const std::string& path);
// That of a directory; errors as ReadManifest and ParseDescription.
absl::StatusOr<StorageDescription> ReadDescription(absl::string_view caller,
                                                   const std::string& path);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_STORAGE_DESCRIPTION_H_
