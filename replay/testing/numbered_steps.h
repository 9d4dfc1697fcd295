// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_TESTING_NUMBERED_STEPS_H_
#define RILL_REPLAY_TESTING_NUMBERED_STEPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Steps for tests of buffers, [lanes, time]. Every value of a step is its
// number, lane * 1000 + first + time, so that a row tells which step it is.
// Leaves: observation float32[3], action int64[], next/reward float32[1],
// next/done bool[1] (the last step of each batch).
TensorDict NumberedSteps(int64_t lanes, int64_t time, int64_t first = 0);

// Priorities that tell rows apart: plus + action % modulo.
std::vector<float> ActionsModulo(const TensorDict& batch, int64_t modulo,
                                 int64_t plus = 0);

// Lazy, in host memory.
std::shared_ptr<Storage> MakeStorage(int64_t capacity, int64_t lanes = 1);

// The samples' rows are whole rows of NumberedSteps, and their `index` says
// where the step lies in lanes of `lane_capacity` slots. A GoogleTest failure
// otherwise.
void ExpectWholeSteps(const TensorDict& sample, int64_t lane_capacity);

}  // namespace rill

#endif  // RILL_REPLAY_TESTING_NUMBERED_STEPS_H_
