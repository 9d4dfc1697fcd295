// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"

namespace rill::telemetry_internal {

AppendFile::AppendFile(absl::string_view who, std::string path, int fd,
                       int64_t size_bytes)
    : who_(who), path_(std::move(path)), fd_(fd), size_bytes_(size_bytes) {}

AppendFile::~AppendFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status AppendFile::ErrnoStatus(absl::string_view what) const {
  return absl::ErrnoToStatus(
      errno, absl::StrCat(who_, ": cannot ", what, " \"", path_, "\""));
}

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Create(
    absl::string_view who, const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  auto file = std::unique_ptr<AppendFile>(
      new AppendFile(who, path, fd, /*size_bytes=*/0));
  if (fd >= 0) return file;
  if (errno == EEXIST) {
    return FailedPrecondition(who, "::Create: \"", path,
                              "\" exists, want a new file");
  }
  return file->ErrnoStatus("create");
}

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Reopen(
    absl::string_view who, const std::string& path, int64_t size_bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  auto file =
      std::unique_ptr<AppendFile>(new AppendFile(who, path, fd, size_bytes));
  if (fd < 0) return file->ErrnoStatus("open");
  struct stat info;
  if (fstat(fd, &info) != 0) return file->ErrnoStatus("examine");
  // Checked before anything is cut: a file that is too short is left as it is.
  if (info.st_size < size_bytes) {
    return DataLoss(who, "::Reopen: \"", path, "\" has ", info.st_size,
                    " bytes, want at least ", size_bytes);
  }
  if (ftruncate(fd, size_bytes) != 0) return file->ErrnoStatus("shorten");
  return file;
}

absl::Status AppendFile::Append(absl::string_view record) {
  const int64_t size = static_cast<int64_t>(record.size());
  for (int64_t done = 0; done < size;) {
    // At the file's own end as this object knows it, not by O_APPEND. Bytes of
    // a record that failed are so written over, even where cutting them off
    // failed.
    const ssize_t n =
        pwrite(fd_, record.data() + done, size - done, size_bytes_ + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const absl::Status status = ErrnoStatus("append to");
      // A half record would hide all later ones from readers.
      if (ftruncate(fd_, size_bytes_) != 0) return ErrnoStatus("mend");
      return status;
    }
    done += n;
  }
  size_bytes_ += size;
  return absl::OkStatus();
}

absl::Status AppendFile::Sync() const {
  return fdatasync(fd_) == 0 ? absl::OkStatus() : ErrnoStatus("sync");
}

}  // namespace rill::telemetry_internal
