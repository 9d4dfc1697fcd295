// SPDX-License-Identifier: Apache-2.0

#ifndef RILL_TOOLS_THIRD_PARTY_SIMD_PROOF_H_
#define RILL_TOOLS_THIRD_PARTY_SIMD_PROOF_H_

#include <cstdint>

namespace rill {

// The sum of x[0, size), added up with the widest vectors of the processor that
// it runs on. Shows how a kernel is written; see tools/README.md.
float SimdSum(const float* x, int64_t size);

// The instruction set that SimdSum uses here.
const char* SimdTarget();

}  // namespace rill

#endif  // RILL_TOOLS_THIRD_PARTY_SIMD_PROOF_H_
