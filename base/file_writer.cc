// SPDX-License-Identifier: Apache-2.0
#include "rill/base/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "rill/base/fault_point.h"
#include "rill/base/file_error.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

using base_internal::FileError;

// So much at once that calls cost nothing, and so little that a full disk or a
// hook of a test is met soon.
constexpr int64_t kMaxWrite = int64_t{64} << 20;

// Blocks for all `bytes`; writing would find them one by one. Mode 0 also sets
// the file's length. Returns 0 or the errno.
int Reserve(int fd, int64_t bytes) {
  if (bytes == 0) return 0;
  if (base_internal::LacksSpaceFor(fd, bytes)) return ENOSPC;
  const int error = base_internal::Fallocate(fd, 0, 0, bytes);
  // Without fallocate a full disk is met while writing.
  return error == EOPNOTSUPP ? 0 : error;
}

}  // namespace

FileWriter::FileWriter(std::string path, int fd, int64_t bytes)
    : path_(std::move(path)), fd_(fd), bytes_(bytes) {}

FileWriter::~FileWriter() { close(fd_); }

absl::StatusOr<std::unique_ptr<FileWriter>> FileWriter::Create(
    const std::string& path, int64_t bytes) {
  if (bytes < 0) {
    return InvalidArgument("FileWriter::Create: bytes: got ", bytes,
                           ", want >= 0");
  }
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return FileError(errno, "FileWriter::Create", "create", path);
  std::unique_ptr<FileWriter> writer(new FileWriter(path, fd, bytes));
  auto remove = absl::MakeCleanup([&] { unlink(path.c_str()); });
  RILL_RETURN_IF_ERROR(FaultPoint("file.reserve", path));
  if (const int error = Reserve(fd, bytes); error != 0) {
    // Space reserved so far counts as free again in the message.
    if (ftruncate(fd, 0) != 0) {
      return FileError(errno, "FileWriter::Create", "give back the space of",
                       path);
    }
    return FileError(error, "FileWriter::Create", "reserve", path, bytes);
  }
  std::move(remove).Cancel();
  return writer;
}

absl::Status FileWriter::Append(absl::string_view content) {
  const int64_t size = static_cast<int64_t>(content.size());
  if (size > bytes_ - position_) {
    return OutOfRange("FileWriter::Append: \"", path_, "\": got ", size,
                      " bytes at ", position_, ", want at most the announced ",
                      bytes_, " in all");
  }
  RILL_RETURN_IF_ERROR(Write(position_, content));
  position_ += size;
  return absl::OkStatus();
}

absl::Status FileWriter::Overwrite(int64_t offset, absl::string_view content) {
  const int64_t size = static_cast<int64_t>(content.size());
  if (offset < 0 || size > position_ || offset > position_ - size) {
    return OutOfRange("FileWriter::Overwrite: \"", path_, "\": got ", size,
                      " bytes at ", offset, ", want what lies in [0, ",
                      position_, ")");
  }
  return Write(offset, content);
}

absl::Status FileWriter::Write(int64_t offset, absl::string_view content) {
  int64_t done = 0;
  const int64_t size = static_cast<int64_t>(content.size());
  while (done < size) {
    RILL_RETURN_IF_ERROR(FaultPoint("file.write", path_));
    const ssize_t n = pwrite(fd_, content.data() + done,
                             std::min(size - done, kMaxWrite), offset + done);
    if (n < 0 && errno != EINTR) {
      return FileError(errno, "FileWriter", "write", path_, size);
    }
    if (n > 0) done += n;
  }
  return absl::OkStatus();
}

}  // namespace rill
