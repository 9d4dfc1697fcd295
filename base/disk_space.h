// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_DISK_SPACE_H_
#define RILL_BASE_DISK_SPACE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace rill {

// What the file system of `path`, which is there, has free for ordinary users,
// in bytes; nullopt where the system does not tell. Thread-safety: thread-safe.
// Cost: a system call.
std::optional<int64_t> FreeDiskBytes(const std::string& path);

}  // namespace rill

#endif  // RILL_BASE_DISK_SPACE_H_
