// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_SIP_HASH_H_
#define RILL_TRANSFORMS_VALUES_SIP_HASH_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace rill::transforms_internal {

// SipHash-2-4 with the key (key0, key1), by Aumasson and Bernstein: the same on
// every machine and for ever.
// Thread-safety: thread-safe. Cost: O(bytes).
uint64_t SipHash(uint64_t key0, uint64_t key1,
                 absl::Span<const std::byte> bytes);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_VALUES_SIP_HASH_H_
