// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_READER_HOLDS_H_
#define RILL_STORAGE_DIRECTORY_READER_HOLDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/file_error.h"
#include "rill/base/sparse_file.h"
#include "rill/slots/slot.h"
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

inline constexpr char kHoldsFile[] = "rill.holds";

// The writer's side of rill.holds, in which readers of other processes say
// which steps of each lane they still want: those from one on
// (docs/formats/storage_directory.md). A hold is a lock of the file that the
// kernel gives back when its process ends, so it never stays behind.
//
// Who comes first: the writer notes which steps it is about to overwrite, and
// then looks at the holds. A reader notes its hold, and then looks at what the
// writer has noted. So one of them sees the other.
//
// Thread-safety: thread-compatible. Fault point: "file.lock", those of
//   SparseFile.
class ReaderHolds {
 public:
  // How many readers may hold at a time.
  static constexpr int kHolds = 16;

  // Makes the file in a directory whose lock the caller has, or opens it with
  // the holds that there are; then Begin. DATA_LOSS where it is of other lanes.
  static absl::StatusOr<std::unique_ptr<ReaderHolds>> Open(
      const std::string& directory, const Lanes& lanes);

  // The steps below `kept(lane)` are gone, and no others are about to go.
  void Begin(absl::FunctionRef<int64_t(int64_t lane)> kept);
  // Notes that steps below `kept(lane)` go, in the lanes of `append`.
  // DEADLINE_EXCEEDED, and nothing is noted, where a reader holds one of them:
  // names it. Cost: O(lanes of the append), a look at kHolds numbers, and a
  // system call for each hold that is in the way.
  absl::Status Overwrite(const LaneSteps& append,
                         absl::FunctionRef<int64_t(int64_t lane)> kept);

 private:
  ReaderHolds(std::string path, const Lanes& lanes, int fd)
      : path_(std::move(path)), lanes_(lanes), lock_(fd) {}

  int64_t* At(int64_t index) const {
    return reinterpret_cast<int64_t*>(range_->data()) + index;
  }
  int64_t* InUse(int hold) const;
  // By lane: of the writer (0), or a hold (from 1 on).
  int64_t* Steps(int row) const;
  // Whether its process lives; else the hold is free again.
  bool IsHeld(int hold) const;

  const std::string path_;
  const Lanes lanes_;
  base_internal::FileDescriptor lock_;  // That this writer goes by holds.
  std::shared_ptr<AddressRange> range_;
  std::vector<int64_t> before_;  // Memory of Overwrite.
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_READER_HOLDS_H_
