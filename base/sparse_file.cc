// SPDX-License-Identifier: Apache-2.0
#include "rill/base/sparse_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

using base_internal::Fallocate;
using base_internal::FileError;
using base_internal::LacksSpaceFor;
using base_internal::ReserveBlocks;

constexpr absl::string_view kReserve = "SparseFile::Reserve";
constexpr absl::string_view kZero = "SparseFile::Zero";

int64_t RoundUpToPage(int64_t bytes) {
  const int64_t page = AddressRange::PageBytes();
  return (bytes + page - 1) / page * page;
}

// 0 or the errno.
int WriteZeros(int fd, int64_t offset, int64_t bytes) {
  static constexpr char kZeros[1 << 16] = {};
  while (bytes > 0) {
    const ssize_t written =
        pwrite(fd, kZeros, std::min<int64_t>(bytes, sizeof(kZeros)), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    offset += written;
    bytes -= written;
  }
  return 0;
}

// The same of bytes that are data, without writing them where that is worth it
// and the file system can. FALLOC_FL_ZERO_RANGE keeps the blocks and marks them
// as unwritten. For few bytes this update of metadata costs more than writing.
int ZeroData(int fd, int64_t offset, int64_t bytes) {
  constexpr int64_t kFewBytes = 1 << 16;
  if (bytes > kFewBytes &&
      Fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset,
                bytes) == 0) {
    return 0;
  }
  return WriteZeros(fd, offset, bytes);
}

// The first hole, or the first data, at or behind `from`, at most `end`. A file
// system that cannot tell says that all is data.
int64_t Seek(int fd, int64_t from, int64_t end, int what) {
  const off_t found = lseek(fd, from, what);
  return found < 0 ? end : std::min<int64_t>(found, end);
}

}  // namespace

absl::StatusOr<std::shared_ptr<AddressRange>> AddressRange::Create(
    int64_t bytes) {
  if (bytes < 0) {
    return InvalidArgument("AddressRange::Create: bytes: got ", bytes,
                           ", want >= 0");
  }
  void* data = nullptr;
  if (bytes > 0) {
    // No access and no reservation: addresses only, neither memory nor swap.
    data = mmap(nullptr, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      return ResourceExhausted("AddressRange::Create: bytes of addresses: got ",
                               bytes,
                               ", want what this process may have; lower the "
                               "capacity, or raise \"ulimit -v\"");
    }
  }
  return std::shared_ptr<AddressRange>(
      new AddressRange(static_cast<std::byte*>(data), bytes));
}

AddressRange::~AddressRange() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

int64_t AddressRange::PageBytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

void AddressRange::Advise(int64_t offset, int64_t bytes, Hint hint) const {
  // madvise wants the beginning of a page, but takes any length.
  const int64_t begin = std::max<int64_t>(offset, 0) & -PageBytes();
  const int64_t end = std::min(offset + bytes, size_bytes_);
  if (begin >= end) return;
  madvise(data_ + begin, end - begin,
          hint == Hint::kRandom ? MADV_RANDOM : MADV_WILLNEED);
}

absl::StatusOr<std::unique_ptr<SparseFile>> SparseFile::Create(
    const std::string& path, int64_t bytes) {
  constexpr absl::string_view kCreate = "SparseFile::Create";
  if (bytes <= 0) {
    return InvalidArgument(kCreate, ": bytes: got ", bytes, ", want > 0");
  }
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return FileError(errno, kCreate, "create", path);
  std::unique_ptr<SparseFile> file(
      new SparseFile(path, fd, bytes, /*is_writable=*/true));
  if (ftruncate(fd, bytes) != 0) {
    const int error = errno;
    unlink(path.c_str());
    return FileError(error, kCreate, absl::StrCat("lengthen to ", bytes), path,
                     bytes);
  }
  return file;
}

absl::StatusOr<std::unique_ptr<SparseFile>> SparseFile::Open(
    const std::string& path, int64_t bytes, Mode mode) {
  constexpr absl::string_view kOpen = "SparseFile::Open";
  const bool is_writable = mode == Mode::kReadWrite;
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  // O_NOFOLLOW refuses a link; without O_NONBLOCK the open of a FIFO would
  // wait.
  const int fd = open(path.c_str(), (is_writable ? O_RDWR : O_RDONLY) |
                                        O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return FileError(errno, kOpen, "open", path);
  std::unique_ptr<SparseFile> file(
      new SparseFile(path, fd, bytes, is_writable));
  RILL_ASSIGN_OR_RETURN(const int64_t size,
                        base_internal::RegularFileSize(fd, kOpen, path));
  if (size != bytes) {
    return DataLoss(kOpen, ": size of \"", path, "\": got ", size,
                    " bytes, want ", bytes, "; the file was changed");
  }
  return file;
}

absl::Status SparseFile::Map(const AddressRange& range, int64_t offset) const {
  constexpr absl::string_view kMap = "SparseFile::Map";
  RILL_RETURN_IF_ERROR(FaultPoint("file.map", path_));
  // MAP_FIXED replaces whatever is mapped there, without an error. So the check
  // is in whole pages: the file's last one must not reach behind the range.
  if (offset < 0 || offset % AddressRange::PageBytes() != 0 ||
      offset > range.size_bytes() ||
      size_bytes_ > range.size_bytes() - offset ||
      RoundUpToPage(size_bytes_) > RoundUpToPage(range.size_bytes()) - offset) {
    return InvalidArgument(kMap, ": offset: got ", offset, " for ", size_bytes_,
                           " bytes of \"", path_, "\", want a multiple of ",
                           AddressRange::PageBytes(), " where they fit in ",
                           range.size_bytes());
  }
  void* const at = range.data() + offset;
  if (mmap(at, size_bytes_, PROT_READ | (is_writable_ ? PROT_WRITE : 0),
           MAP_SHARED | MAP_FIXED, file_.get(), 0) == MAP_FAILED) {
    return FileError(errno, kMap, "map", path_);
  }
  return absl::OkStatus();
}

absl::Status SparseFile::CheckPiece(absl::string_view caller, int64_t offset,
                                    int64_t bytes) const {
  if (offset >= 0 && bytes >= 0 && offset <= size_bytes_ - bytes) {
    return absl::OkStatus();
  }
  return InvalidArgument(caller, ": got bytes [", offset, ", +", bytes,
                         ") of \"", path_, "\", want some of its ",
                         size_bytes_);
}

absl::Status SparseFile::Reserve(int64_t offset, int64_t bytes) {
  RILL_RETURN_IF_ERROR(CheckPiece(kReserve, offset, bytes));
  RILL_RETURN_IF_ERROR(FaultPoint("file.reserve", path_));
  const int fd = file_.get();
  const int64_t end = offset + bytes;
  // Only holes are allocated: what fails can then be given back without a look
  // at what it held, which was nothing.
  struct Hole {
    int64_t begin, bytes;
  };
  std::vector<Hole> holes;
  int64_t hole_bytes = 0;
  for (int64_t hole = Seek(fd, offset, end, SEEK_HOLE); hole < end;) {
    const int64_t data = Seek(fd, hole, end, SEEK_DATA);
    // Reserved space that the kernel reads ahead beside us looks like data from
    // then on, so there may be nothing of the hole left.
    if (hole < data) holes.push_back({hole, data - hole});
    hole_bytes += data - hole;
    hole = data < end ? Seek(fd, data, end, SEEK_HOLE) : end;
  }
  // Reserved space that is not written yet looks like a hole: of the file's
  // blocks, those that hold no data of the range may be there.
  struct stat info;
  if (fstat(fd, &info) != 0)
    return FileError(errno, kReserve, "look up", path_);
  const int64_t there = info.st_blocks * 512 - (bytes - hole_bytes);
  int error =
      LacksSpaceFor(fd, hole_bytes - std::max<int64_t>(there, 0)) ? ENOSPC : 0;
  for (size_t i = 0; i < holes.size() && error == 0; ++i) {
    error =
        ReserveBlocks(fd, FALLOC_FL_KEEP_SIZE, holes[i].begin, holes[i].bytes);
    for (size_t j = 0; j <= i && error != 0; ++j) {
      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, holes[j].begin,
                holes[j].bytes);
    }
  }
  if (error != 0) return FileError(error, kReserve, "reserve", path_, bytes);
  if (!holes.empty() || bytes == 0) return absl::OkStatus();
  // A file system that does not know its holes says that there are none.
  error = ReserveBlocks(fd, FALLOC_FL_KEEP_SIZE, offset, bytes);
  if (error != 0) return FileError(error, kReserve, "reserve", path_, bytes);
  return absl::OkStatus();
}

absl::Status SparseFile::Zero(int64_t offset, int64_t bytes) {
  RILL_RETURN_IF_ERROR(CheckPiece(kZero, offset, bytes));
  RILL_RETURN_IF_ERROR(FaultPoint("file.zero", path_));
  const int fd = file_.get();
  const int64_t end = offset + bytes;
  for (int64_t data = Seek(fd, offset, end, SEEK_DATA); data < end;) {
    const int64_t hole = Seek(fd, data, end, SEEK_HOLE);
    if (const int error = ZeroData(fd, data, hole - data); error != 0) {
      return FileError(error, kZero, "zero", path_, hole - data);
    }
    data = hole < end ? Seek(fd, hole, end, SEEK_DATA) : end;
  }
  return absl::OkStatus();
}

int64_t SparseFile::DiskBytes() const {
  constexpr int64_t kBlockBytes = 512;  // Of st_blocks, on every file system.
  struct stat info;
  return fstat(file_.get(), &info) == 0 ? info.st_blocks * kBlockBytes : 0;
}

absl::Status SparseFile::Sync() const {
  RILL_RETURN_IF_ERROR(FaultPoint("file.sync", path_));
  int error;
  do {
    // Includes the pages that shared mappings have changed: they are the file's
    // page cache. msync would need each mapping's address.
    error = fdatasync(file_.get()) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != 0) return FileError(error, "SparseFile::Sync", "sync", path_);
  return absl::OkStatus();
}

}  // namespace rill
