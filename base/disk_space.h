// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_DISK_SPACE_H_
#define RILL_BASE_DISK_SPACE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace rill {

// The bytes that the file system of `path` has free for ordinary users; nullopt
// where the system does not tell. `path` must be there. Thread-safety:
// thread-safe.
// Cost: a system call.
std::optional<int64_t> FreeDiskBytes(const std::string& path);

}  // namespace rill

#endif  // RILL_BASE_DISK_SPACE_H_
