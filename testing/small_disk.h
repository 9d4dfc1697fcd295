// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_SMALL_DISK_H_
#define RILL_TESTING_SMALL_DISK_H_

#include <cstdint>
#include <functional>
#include <string>

namespace rill {

// Runs `test(directory)` in a child process, where `directory` is a file system
// of its own of `bytes` (a tmpfs in a mount namespace, which takes no rights).
// Its failures fail the test that called, and so does a signal: a write or read
// that no page could be had for is SIGBUS there. Skips the test where the
// kernel does not let us mount. Call it before the test has started threads.
void RunOnSmallDisk(int64_t bytes,
                    const std::function<void(const std::string&)>& test);

}  // namespace rill

#endif  // RILL_TESTING_SMALL_DISK_H_
