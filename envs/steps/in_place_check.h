// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_IN_PLACE_CHECK_H_
#define RILL_ENVS_STEPS_IN_PLACE_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Remembers where the leaves of a step stand: an Env fills them in place, and
// those who look leaves up once rely on that.
// Thread-safety: thread-compatible.
class InPlaceCheck {
 public:
  InPlaceCheck() = default;
  explicit InPlaceCheck(const TensorDict& step);

  // INVALID_ARGUMENT names the leaf that was replaced, added or deleted.
  // Cost: a look-up a leaf.
  absl::Status Check(absl::string_view who, const TensorDict& step) const;

 private:
  struct Leaf {
    std::string key;
    Tensor tensor;  // Holds the bytes, so that no other leaf gets them.
  };
  std::vector<Leaf> leaves_;
};

}  // namespace rill

#endif  // RILL_ENVS_STEPS_IN_PLACE_CHECK_H_
