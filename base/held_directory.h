// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_HELD_DIRECTORY_H_
#define RILL_BASE_HELD_DIRECTORY_H_

#include <string>

#include "rill/base/file_error.h"

namespace rill {

// The directory that a path leads to, held open. It tells whether the path
// leads elsewhere now, since somebody called ReplaceDirectory (file.h) between
// two looks below it. Hold it, look, and believe what was seen only where it is
// still there.
// Thread-safety: immutable.
//
// Example (HeldDirectoryTest.Example runs it):
//   const HeldDirectory held(path);
//   const auto first = ReadFile(JoinPath(path, "first"));
//   const auto second = ReadFile(JoinPath(path, "second"));
//   if (!held.IsStillThere()) return absl::AbortedError("read it again");
class HeldDirectory {
 public:
  explicit HeldDirectory(const std::string& path);

  // Whether the path leads to the same directory, or to none both times. One
  // that was removed is never taken for one that was made after it.
  bool IsStillThere() const;

 private:
  const std::string path_;
  const base_internal::FileDescriptor directory_;
};

}  // namespace rill

#endif  // RILL_BASE_HELD_DIRECTORY_H_
