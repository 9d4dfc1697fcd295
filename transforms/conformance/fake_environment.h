// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_FAKE_ENVIRONMENT_H_
#define RILL_TRANSFORMS_CONFORMANCE_FAKE_ENVIRONMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/transform.h"

namespace rill {

// Drives a transform as a collector does beside an environment: resets, steps
// of random values of a spec, and the carrying over of next's leaves to the
// next root. Equal seeds give equal values.
// Thread-safety: thread-compatible.
class FakeEnvironment {
 public:
  FakeEnvironment(TensorDictSpec spec, int64_t lanes, uint64_t seed);

  // Resets the masked lanes; all others keep their root.
  absl::Status Reset(absl::Span<const uint8_t> mask, Transform& transform);
  // A whole step, as the transform leaves it; its bytes are its own.
  absl::StatusOr<TensorDict> Step(Transform& transform);

  // The root of the step to come.
  const TensorDict& root() const { return root_; }
  int64_t lanes() const { return lanes_; }

 private:
  const TensorDictSpec spec_;
  const int64_t lanes_;
  const uint64_t seed_;
  uint64_t batch_ = 0;
  TensorDict root_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_CONFORMANCE_FAKE_ENVIRONMENT_H_
