// SPDX-License-Identifier: Apache-2.0
#include "rill/base/disk_space.h"

#include <sys/statvfs.h>

namespace rill {

std::optional<int64_t> FreeDiskBytes(const std::string& path) {
  struct statvfs fs;
  if (statvfs(path.c_str(), &fs) != 0) return std::nullopt;
  // f_bavail leaves out the blocks kept for root. Its unit is f_frsize; f_bsize
  // is only the preferred size of a transfer.
  return static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize);
}

}  // namespace rill
