// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_SPARSE_FILE_H_
#define RILL_BASE_SPARSE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/file_error.h"

namespace rill {

// A run of addresses with nothing behind it until files are mapped into it, so
// that several files lie side by side. Takes no memory. All of it is unmapped
// when the object dies.
// Thread-safety: immutable.
class AddressRange {
 public:
  // `bytes` >= 0. RESOURCE_EXHAUSTED where the process may not have as many.
  static absl::StatusOr<std::shared_ptr<AddressRange>> Create(int64_t bytes);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }
  // Offsets of files in a range must be multiples of this.
  static int64_t PageBytes();

  enum class Hint {
    kRandom,  // Will be read here and there: a fault reads its own page only.
    kSoon,    // Will be touched soon: reading starts now, nobody waits for it.
  };
  // Tells the kernel of the pages of [offset, offset + bytes), cut to the
  // range. Changes no byte and cannot fail. Cost: a system call.
  void Advise(int64_t offset, int64_t bytes, Hint hint) const;

 private:
  AddressRange(std::byte* data, int64_t size_bytes)
      : data_(data), size_bytes_(size_bytes) {}

  std::byte* data_;
  int64_t size_bytes_;
};

// A file of a fixed length whose space on the disk is reserved piece by piece,
// ahead of writes through a mapping. A full disk is then RESOURCE_EXHAUSTED
// with the bytes asked and free. A write into a hole would be SIGBUS.
// (mapped_file.h reserves all at once.)
//
// Thread-safety: thread-compatible; what lies in a mapping is the caller's to
//   synchronise.
// Fault points: "file.open", "file.reserve", "file.map", "file.zero",
//   "file.sync".
//
// Example (SparseFileTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto range, AddressRange::Create(kBytes));
//   RILL_ASSIGN_OR_RETURN(auto file, SparseFile::Create(path, kBytes));
//   RILL_RETURN_IF_ERROR(file->Map(*range, 0));
//   RILL_RETURN_IF_ERROR(file->Reserve(0, 1 << 20));
//   range->data()[0] = std::byte{1};
class SparseFile {
 public:
  enum class Mode { kReadOnly, kReadWrite };

  // Makes a file of `bytes` (> 0) that is all hole and reads as zeros.
  // FAILED_PRECONDITION if `path` exists.
  static absl::StatusOr<std::unique_ptr<SparseFile>> Create(
      const std::string& path, int64_t bytes);
  // Opens a regular file, no symbolic link, of exactly `bytes`; one of another
  // size is DATA_LOSS with both.
  static absl::StatusOr<std::unique_ptr<SparseFile>> Open(
      const std::string& path, int64_t bytes, Mode mode);

  const std::string& path() const { return path_; }
  int64_t size_bytes() const { return size_bytes_; }

  // Maps the whole file, shared, to `offset` (a multiple of PageBytes()) of
  // `range`, where it fits. The mapping lasts as long as the range.
  absl::Status Map(const AddressRange& range, int64_t offset) const;

  // Gives [offset, offset + bytes), within the file, space on the disk: what is
  // stored there stays, holes go on reading as zeros. On failure what this call
  // had got is given back, and what an earlier one had reserved of these bytes
  // and nobody wrote to. Nobody writes to the holes meanwhile.
  absl::Status Reserve(int64_t offset, int64_t bytes);

  // Makes [offset, offset + bytes), within the file, read as zeros.
  // Reserved space stays reserved, holes stay holes. Nobody writes there meanwhile; who
  // reads may find part of the old bytes. On failure some are zeros.
  // Cost: some system calls a run of data, none a byte where the file system
  // can do it; else a write of as many zeros.
  absl::Status Zero(int64_t offset, int64_t bytes);

  // Bytes that the file takes on the disk now; 0 where the system does not
  // tell. Thread-safe.
  int64_t DiskBytes() const;

  // Brings what was written through mappings to the disk and waits for it.
  absl::Status Sync() const;

 private:
  SparseFile(std::string path, int fd, int64_t size_bytes, bool is_writable)
      : path_(std::move(path)),
        file_(fd),
        size_bytes_(size_bytes),
        is_writable_(is_writable) {}
  absl::Status CheckPiece(absl::string_view caller, int64_t offset,
                          int64_t bytes) const;

  std::string path_;
  base_internal::FileDescriptor file_;
  int64_t size_bytes_;
  bool is_writable_;
};

}  // namespace rill

#endif  // RILL_BASE_SPARSE_FILE_H_
