// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_PROCESS_TRACES_H_
#define RILL_TESTING_PROCESS_TRACES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rill {

// The system's resources that this process has, from /proc: for tests that none
// is left over. Thread-safety: thread-safe.

// Processes whose parent this one is, ended or not.
std::vector<pid_t> ChildProcesses();

// The names in a folder, in order: "/proc/self/fd" has the open descriptors.
std::vector<std::string> NamesIn(const std::string& folder);

// Lines of /proc/self/maps that hold `text`: "memfd" is anonymous memory that
// processes share.
std::vector<std::string> MappingsOf(absl::string_view text);

}  // namespace rill

#endif  // RILL_TESTING_PROCESS_TRACES_H_
