// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_MAPPED_FILE_H_
#define RILL_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rill {

// A file mapped into memory, unmapped when the object dies.
//
// Thread-safety: immutable (the bytes are the caller's to synchronise).
// Cost: Open reads nothing; pages come in when they are touched.
// Fault points: "file.open", "file.reserve", "file.map".
class MappedFile {
 public:
  enum class Mode { kReadOnly, kReadWrite };

  // Maps an existing regular file. `expected_bytes` >= 0: a shorter file is
  // DATA_LOSS with both sizes; a longer one is mapped up to expected_bytes.
  // An empty one has no data(). The holes of a sparse file are not reserved.
  static absl::StatusOr<std::shared_ptr<MappedFile>> Open(
      const std::string& path, Mode mode, int64_t expected_bytes = -1);

  // Makes a file of `bytes` (> 0) and maps it shared and writable. Its space is
  // reserved on the disk: a full disk is RESOURCE_EXHAUSTED here, never SIGBUS
  // later. FAILED_PRECONDITION if `path` exists.
  static absl::StatusOr<std::shared_ptr<MappedFile>> Create(
      const std::string& path, int64_t bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }
  bool is_writable() const { return writable_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::byte* data, int64_t size_bytes,
             bool writable)
      : path_(std::move(path)),
        data_(data),
        size_bytes_(size_bytes),
        writable_(writable) {}

  std::string path_;
  std::byte* data_;
  int64_t size_bytes_;
  bool writable_;
};

}  // namespace rill

#endif  // RILL_BASE_MAPPED_FILE_H_
