// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_STORAGE_LAYOUT_H_
#define RILL_STORAGE_STORAGE_LAYOUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rill {

// The places of a row's leaves. With kRows they are packed into one record, so
// that a random row costs one cache miss instead of one a leaf. With kColumns
// there is one array a leaf, contiguous in a lease. With kAuto the storage
// takes what measured faster for the row's width (kWidestRecordBytes).
// Behaviour is the same.
enum class StorageLayout : uint8_t { kAuto, kRows, kColumns };

// "rows" or "columns"; for a layout that was chosen, not kAuto.
constexpr absl::string_view StorageLayoutName(StorageLayout layout) {
  return layout == StorageLayout::kRows ? "rows" : "columns";
}

// Which rows are neighbours in memory: the steps of one lane, or the lanes of
// one time step. Behaviour is the same.
enum class StorageOrder : uint8_t { kLaneMajor, kTimeMajor };

// kAuto takes kRows for rows of up to so many bytes and kColumns for wider
// ones. With 256 random rows of 7 leaves, records were faster at every measured
// width. The ratio was 3.7 at 47 bytes and 1.1 to 1.2 from 0.5 to 28 KB
// (dense_storage_benchmark, Gather).
inline constexpr int64_t kWidestRecordBytes = int64_t{32} << 10;

}  // namespace rill

#endif  // RILL_STORAGE_STORAGE_LAYOUT_H_
