// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/reader_holds.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"

// The file, in int64: magic, lanes, holds; which holds are in use, from 3 on;
// zeros up to kHeader; then kHolds + 1 rows of a number a lane. Byte 0 is
// locked by the writer that goes by it, byte h by the reader of hold h.

namespace rill::storage_internal {
namespace {

constexpr int64_t kHeader = 64;
constexpr char kMagic[] = "RILLHLD1";

int64_t Load(const int64_t* at) {
  return std::atomic_ref<int64_t>(*const_cast<int64_t*>(at))
      .load(std::memory_order_acquire);
}
void Store(int64_t* at, int64_t value) {
  std::atomic_ref<int64_t>(*at).store(value, std::memory_order_release);
}

// A lock of one byte for this open file, which other processes and other opens
// of the file meet.
struct flock LockOf(int64_t byte, int type) {
  struct flock lock = {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

}  // namespace

int64_t* ReaderHolds::InUse(int hold) const { return At(2 + hold); }

int64_t* ReaderHolds::Steps(int row) const {
  return At(kHeader + row * lanes_.count);
}

absl::StatusOr<std::unique_ptr<ReaderHolds>> ReaderHolds::Open(
    const std::string& directory, const Lanes& lanes) {
  const std::string path = JoinPath(directory, kHoldsFile);
  const int64_t bytes = 8 * (kHeader + (kHolds + 1) * lanes.count);
  const bool is_new = !PathExists(path);
  RILL_ASSIGN_OR_RETURN(
      const auto file,
      is_new ? SparseFile::Create(path, bytes)
             : SparseFile::Open(path, bytes, SparseFile::Mode::kReadWrite));
  RILL_RETURN_IF_ERROR(file->Reserve(0, bytes));
  RILL_RETURN_IF_ERROR(FaultPoint("file.lock", path));
  const int fd =
      open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    return base_internal::FileError(errno, "ReaderHolds::Open", "open", path);
  }
  auto holds = absl::WrapUnique(new ReaderHolds(path, lanes, fd));
  RILL_ASSIGN_OR_RETURN(holds->range_, AddressRange::Create(bytes));
  RILL_RETURN_IF_ERROR(file->Map(*holds->range_, 0));
  if (std::memcmp(holds->At(0), kMagic, 8) != 0) {
    // New, or somebody was killed while it was.
    *holds->At(1) = lanes.count;
    *holds->At(2) = kHolds;
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(holds->At(0), kMagic, 8);
  } else if (*holds->At(1) != lanes.count || *holds->At(2) != kHolds) {
    return DataLoss("MemmapStorage: \"", path, "\": got ", *holds->At(2),
                    " holds of ", *holds->At(1), " lanes, want ", kHolds,
                    " of ", lanes.count);
  }
  struct flock lock = LockOf(0, F_WRLCK);
  if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    return base_internal::FileError(errno, "ReaderHolds::Open", "lock", path);
  }
  return holds;
}

bool ReaderHolds::IsHeld(int hold) const {
  struct flock lock = LockOf(hold, F_WRLCK);
  // Whoever gets it, frees what its reader has left; one that takes the hold
  // anew meanwhile waits, or has it already.
  if (fcntl(lock_.get(), F_OFD_SETLK, &lock) != 0) return true;
  Store(InUse(hold), 0);
  lock.l_type = F_UNLCK;
  fcntl(lock_.get(), F_OFD_SETLK, &lock);
  return false;
}

void ReaderHolds::Begin(absl::FunctionRef<int64_t(int64_t lane)> kept) {
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    Store(&Steps(0)[lane], kept(lane));
  }
}

absl::Status ReaderHolds::Overwrite(
    const LaneSteps& append, absl::FunctionRef<int64_t(int64_t lane)> kept) {
  int64_t* const noted = Steps(0);
  before_.clear();
  bool overwrites = false;
  for (int64_t lane = append.first; lane < append.end(); ++lane) {
    before_.push_back(noted[lane]);
    const int64_t next = kept(lane);
    if (next <= noted[lane]) continue;
    Store(&noted[lane], next);
    overwrites = true;
  }
  if (!overwrites) return absl::OkStatus();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int hold = 1; hold <= kHolds; ++hold) {
    if (Load(InUse(hold)) == 0) continue;
    const int64_t* const steps = Steps(hold);
    for (int64_t lane = append.first; lane < append.end(); ++lane) {
      const int64_t held = Load(&steps[lane]);
      const int64_t next = noted[lane];
      if (held >= next || !IsHeld(hold)) continue;
      for (int64_t i = append.first; i < append.end(); ++i) {
        Store(&noted[i], before_[i - append.first]);
      }
      return absl::DeadlineExceededError(absl::StrCat(
          "Storage::Extend: lane ", lane, ": got steps below ", next,
          " to overwrite, of which a reader holds those from ", held,
          " on, want none that is held; let it read first, or give "
          "Options::hold_timeout more time"));
    }
  }
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
