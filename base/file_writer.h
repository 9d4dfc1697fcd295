// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_FILE_WRITER_H_
#define RILL_BASE_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill {

// A new file of a known size, written from its beginning to its end. Neither
// atomic nor synced: use it inside ReplaceFile or ReplaceDirectory (file.h).
//
// Thread-safety: thread-compatible. Fault points: "file.open", "file.reserve",
// "file.write". Codes: file.h.
class FileWriter {
 public:
  // Makes `path` with the space for `bytes` (>= 0) reserved, so that a full
  // disk is RESOURCE_EXHAUSTED before the work starts. FAILED_PRECONDITION if
  // `path` exists.
  static absl::StatusOr<std::unique_ptr<FileWriter>> Create(
      const std::string& path, int64_t bytes);

  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Behind what was appended before. OUT_OF_RANGE beyond the announced size.
  absl::Status Append(absl::string_view content);
  // Over what was appended before.
  absl::Status Overwrite(int64_t offset, absl::string_view content);
  // Bytes appended so far.
  int64_t position() const { return position_; }

 private:
  FileWriter(std::string path, int fd, int64_t bytes);
  absl::Status Write(int64_t offset, absl::string_view content);

  std::string path_;
  int fd_;
  int64_t bytes_;
  int64_t position_ = 0;
};

}  // namespace rill

#endif  // RILL_BASE_FILE_WRITER_H_
