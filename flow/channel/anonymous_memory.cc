// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/anonymous_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"

namespace rill::channel_internal {
namespace {

using base_internal::FileError;

constexpr char kWhat[] = "shared memory";  // In errors, for a path.

// Memory that programs can get without one being killed for it; -1: unknown.
// fallocate does not ask: it takes what there is.
int64_t AvailableMemory() {
  const absl::StatusOr<std::string> text = ReadFile("/proc/meminfo");
  constexpr absl::string_view kField = "MemAvailable:";
  const size_t at = text.ok() ? text->find(kField) : std::string::npos;
  if (at == std::string::npos) return -1;
  return 1024 * std::strtoll(text->c_str() + at + kField.size(), nullptr, 10);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AnonymousMemory>> AnonymousMemory::Create(
    absl::string_view caller, const std::string& name, int64_t bytes) {
  RILL_RETURN_IF_ERROR(FaultPoint("channel.create", name));
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return FileError(errno, caller, "make", kWhat);
  std::unique_ptr<AnonymousMemory> memory(new AnonymousMemory(fd, bytes));
  // F_SEAL_SEAL keeps anybody from adding F_SEAL_WRITE, after which no process
  // could map the memory to write.
  if (ftruncate(fd, bytes) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return FileError(errno, caller, "size", kWhat);
  }
  return memory;
}

std::unique_ptr<AnonymousMemory> AnonymousMemory::Adopt(int fd) {
  std::unique_ptr<AnonymousMemory> memory(new AnonymousMemory(fd, 0));
  struct stat info;
  const int seals = fcntl(fd, F_GET_SEALS);
  // Without the seal another process could shorten it under this one's mapping,
  // whose next access would be SIGBUS.
  if (fstat(fd, &info) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return nullptr;
  }
  memory->size_bytes_ = info.st_size;
  return memory;
}

absl::Status AnonymousMemory::Reserve(absl::string_view caller, int64_t offset,
                                      int64_t bytes) const {
  const int64_t available = AvailableMemory();
  const bool is_too_much = available >= 0 && bytes > available;
  if (!is_too_much && base_internal::Fallocate(fd(), 0, offset, bytes) == 0) {
    return absl::OkStatus();
  }
  return ResourceExhausted(caller, ": cannot reserve shared memory: asked ",
                           bytes, " bytes, about ", available,
                           " are available");
}

absl::Status AnonymousMemory::Map(absl::string_view caller,
                                  const AddressRange& range, int64_t at,
                                  int64_t offset, int64_t bytes,
                                  bool is_writable) const {
  const int access = PROT_READ | (is_writable ? PROT_WRITE : 0);
  if (mmap(range.data() + at, bytes, access, MAP_SHARED | MAP_FIXED, fd(),
           offset) == MAP_FAILED) {
    return FileError(errno, caller, "map", kWhat);
  }
  return absl::OkStatus();
}

bool AnonymousMemory::Read(int64_t offset, absl::Span<char> to) const {
  ssize_t got;
  do {
    got = pread(fd(), to.data(), to.size(), offset);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(to.size());
}

}  // namespace rill::channel_internal
