// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_TED_SPEC_H_
#define RILL_TRANSFORMS_CONFORMANCE_TED_SPEC_H_

#include "rill/specs/spec.h"

namespace rill {

// A step as most environments make it: float32[4] observations in [-1, 1], one
// of two actions, a float32 reward and the three flags, in TED layout.
TensorDictSpec TedSpec();

}  // namespace rill

#endif  // RILL_TRANSFORMS_CONFORMANCE_TED_SPEC_H_
