// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/log_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/memory/memory.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"

namespace rill::recorder_internal {
namespace {

constexpr absl::string_view kCreate = "LogFile::Create";
constexpr absl::string_view kAppend = "LogFile::Append";

}  // namespace

absl::StatusOr<std::unique_ptr<LogFile>> LogFile::Create(
    const std::string& path) {
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return base_internal::FileError(errno, kCreate, "create", path);
  auto file = absl::WrapUnique(new LogFile(path, fd));
  if (const absl::Status reserved = file->Reserve(1); !reserved.ok()) {
    unlink(path.c_str());
    return reserved;
  }
  return file;
}

LogFile::~LogFile() {
  if (data_ != nullptr) munmap(data_, kStep);
  // Zeros behind the bytes are no damage either.
  if (ftruncate(file_.get(), size_bytes_) != 0) return;
}

absl::Status LogFile::Reserve(int64_t bytes) {
  static constexpr char kZeros[kStep] = {};
  if (bytes <= reserved_) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(FaultPoint("file.reserve", path_));
  const int64_t wanted = (bytes + kStep - 1) / kStep * kStep;
  const int64_t more = wanted - reserved_;
  while (reserved_ < wanted) {
    const ssize_t written =
        pwrite(file_.get(), kZeros, kStep - reserved_ % kStep, reserved_);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return base_internal::FileError(written < 0 ? errno : ENOSPC, kAppend,
                                      "reserve", path_, more);
    }
    reserved_ += written;
  }
  return absl::OkStatus();
}

absl::Status LogFile::MapAt(int64_t offset) {
  const int64_t window = offset / kStep * kStep;
  if (data_ != nullptr && window == window_) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(FaultPoint("file.map", path_));
  void* const data = mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_SHARED,
                          file_.get(), window);
  if (data == MAP_FAILED) {
    return base_internal::FileError(errno, kAppend, "map", path_);
  }
  if (data_ != nullptr) munmap(data_, kStep);
  data_ = static_cast<std::byte*>(data);
  window_ = window;
  return absl::OkStatus();
}

absl::Status LogFile::Append(absl::string_view bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  RILL_RETURN_IF_ERROR(Reserve(size_bytes_ + size));
  for (int64_t done = 0; done < size;) {
    const int64_t at = size_bytes_ + done;
    RILL_RETURN_IF_ERROR(MapAt(at));
    const int64_t piece = std::min(size - done, window_ + kStep - at);
    std::memcpy(data_ + (at - window_), bytes.data() + done, piece);
    done += piece;
  }
  size_bytes_ += size;
  return absl::OkStatus();
}

}  // namespace rill::recorder_internal
