// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_FUZZING_FUZZ_FILE_H_
#define RILL_FORMATS_FUZZING_FUZZ_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {

// Bytes as a file of no file system, for fuzz targets of what opens a path.
// Thread-safety: thread-compatible.
class FuzzFile {
 public:
  explicit FuzzFile(absl::string_view bytes)
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    RILL_FUZZ_CHECK(fd_ >= 0);
    RILL_FUZZ_CHECK(write(fd_, bytes.data(), bytes.size()) ==
                    static_cast<ssize_t>(bytes.size()));
  }
  ~FuzzFile() { close(fd_); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  int fd_;
};

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_FUZZING_FUZZ_FILE_H_
