// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_INSTRUCTION_SETS_H_
#define RILL_TESTING_INSTRUCTION_SETS_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace rill {

// Runs `body` once for each instruction set of this processor: what Highway
// dispatches to is that one's code meanwhile, in the whole process.
// Thread-safety: thread-hostile.
template <typename Body>
void ForEachTarget(Body&& body) {
  for (int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace rill

#endif  // RILL_TESTING_INSTRUCTION_SETS_H_
