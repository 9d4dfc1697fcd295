// SPDX-License-Identifier: Apache-2.0
#include "rill/base/held_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace rill {

HeldDirectory::HeldDirectory(const std::string& path)
    : path_(path),
      directory_(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

bool HeldDirectory::IsStillThere() const {
  struct stat now;
  const bool is_there = stat(path_.c_str(), &now) == 0 && S_ISDIR(now.st_mode);
  // Nothing there both times counts as unchanged.
  if (!directory_.is_open() || !is_there) {
    return directory_.is_open() == is_there;
  }
  struct stat then;
  // While it is open no other directory gets its inode.
  return fstat(directory_.get(), &then) == 0 && then.st_dev == now.st_dev &&
         then.st_ino == now.st_ino;
}

}  // namespace rill
