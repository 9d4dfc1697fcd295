// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_RNG_ENTROPY_H_
#define RILL_BASE_RNG_ENTROPY_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"

namespace rill {

// 16 bytes that no other call gives, on whatever machine: for names. No draw
// may depend on them (rng.h). Thread-safety: thread-safe. Cost: a system call.
absl::StatusOr<std::array<uint8_t, 16>> RandomName();

}  // namespace rill

#endif  // RILL_BASE_RNG_ENTROPY_H_
