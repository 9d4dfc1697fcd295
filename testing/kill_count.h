// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_KILL_COUNT_H_
#define RILL_TESTING_KILL_COUNT_H_

#include <cstdint>

namespace rill {

// How often a test kills what it watches: 50, or RILL_KILLS of the environment
// (tools/kill_test); the test fails where that is no number above 0.
int64_t KillCount();

}  // namespace rill

#endif  // RILL_TESTING_KILL_COUNT_H_
