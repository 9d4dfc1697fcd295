// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_RECORDER_LOG_FILE_H_
#define RILL_RECORDER_LOG_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/file_error.h"

namespace rill::recorder_internal {

// A file that grows at its end, through a mapping. A process that is killed the
// instant after an Append leaves its bytes there; a machine that stops does
// not. Zeros are written kStep bytes ahead, so that a full disk is an error and
// no signal; they are there until the object goes.
//
// Thread-safety: thread-compatible.
// Cost: an Append copies the bytes; each kStep bytes a few system calls, 1 us a
//   page. A page that is only reserved takes four times that when it is touched.
// Fault points: "file.open", "file.reserve", "file.map".
class LogFile {
 public:
  static constexpr int64_t kStep = int64_t{1} << 16;

  // Makes `path`. FAILED_PRECONDITION if it exists.
  static absl::StatusOr<std::unique_ptr<LogFile>> Create(
      const std::string& path);
  // The file ends where the bytes do.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // RESOURCE_EXHAUSTED on a full disk: nothing of `bytes` is there then.
  absl::Status Append(absl::string_view bytes);
  int64_t size_bytes() const { return size_bytes_; }

 private:
  LogFile(std::string path, int fd) : path_(std::move(path)), file_(fd) {}
  // Space for so many bytes in all.
  absl::Status Reserve(int64_t bytes);
  // Maps the kStep bytes that `offset` lies in.
  absl::Status MapAt(int64_t offset);

  const std::string path_;
  const base_internal::FileDescriptor file_;
  int64_t size_bytes_ = 0;
  int64_t reserved_ = 0;
  int64_t window_ = 0;         // Where it begins in the file.
  std::byte* data_ = nullptr;  // Its kStep bytes.
};

}  // namespace rill::recorder_internal

#endif  // RILL_RECORDER_LOG_FILE_H_
