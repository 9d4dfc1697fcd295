// SPDX-License-Identifier: Apache-2.0
#include "rill/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "rill/base/fault_point.h"
#include "rill/base/file_error.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

using base_internal::FileDescriptor;
using base_internal::FileError;

// Shared pages of the first `bytes` of the file, null for none: mmap refuses a
// length of 0. The mapping outlives the descriptor.
absl::StatusOr<std::byte*> Map(absl::string_view function, int fd,
                               const std::string& path, int64_t bytes,
                               bool writable) {
  RILL_RETURN_IF_ERROR(FaultPoint("file.map", path));
  if (bytes == 0) return static_cast<std::byte*>(nullptr);
  void* data = mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0),
                    MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return FileError(errno, function, "map", path);
  return static_cast<std::byte*>(data);
}

}  // namespace

absl::StatusOr<std::shared_ptr<MappedFile>> MappedFile::Open(
    const std::string& path, Mode mode, int64_t expected_bytes) {
  const bool writable = mode == Mode::kReadWrite;
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  // Without O_NONBLOCK the open of a FIFO would wait for a writer. It is
  // refused below, like all that is no regular file.
  FileDescriptor file(open(
      path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    return FileError(errno, "MappedFile::Open", "open", path);
  }
  RILL_ASSIGN_OR_RETURN(
      const int64_t size,
      base_internal::RegularFileSize(file.get(), "MappedFile::Open", path));
  if (expected_bytes >= 0 && size < expected_bytes) {
    return DataLoss("MappedFile::Open: size of \"", path, "\": got ", size,
                    " bytes, want ", expected_bytes,
                    "; the file was cut short");
  }
  const int64_t bytes = expected_bytes >= 0 ? expected_bytes : size;
  RILL_ASSIGN_OR_RETURN(std::byte * data, Map("MappedFile::Open", file.get(),
                                              path, bytes, writable));
  return std::shared_ptr<MappedFile>(
      new MappedFile(path, data, bytes, writable));
}

absl::StatusOr<std::shared_ptr<MappedFile>> MappedFile::Create(
    const std::string& path, int64_t bytes) {
  if (bytes <= 0) {
    return InvalidArgument("MappedFile::Create: bytes: got ", bytes,
                           ", want > 0");
  }
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  FileDescriptor file(
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) {
    return FileError(errno, "MappedFile::Create", "create", path);
  }
  auto remove = absl::MakeCleanup([&] { unlink(path.c_str()); });
  RILL_RETURN_IF_ERROR(FaultPoint("file.reserve", path));
  if (const int error =
          base_internal::LacksSpaceFor(file.get(), bytes)
              ? ENOSPC
              : base_internal::ReserveBlocks(file.get(), 0, 0, bytes);
      error != 0) {
    // Space reserved so far counts as free again in the message.
    if (ftruncate(file.get(), 0) != 0)
      return FileError(errno, "MappedFile::Create", "give back the space of",
                       path);
    return FileError(error, "MappedFile::Create", "reserve", path, bytes);
  }
  RILL_ASSIGN_OR_RETURN(std::byte * data, Map("MappedFile::Create", file.get(),
                                              path, bytes, /*writable=*/true));
  std::move(remove).Cancel();
  return std::shared_ptr<MappedFile>(
      new MappedFile(path, data, bytes, /*writable=*/true));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

}  // namespace rill
