// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_REPLACED_LEAVES_H_
#define RILL_REPLAY_SAMPLING_REPLACED_LEAVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {

// The tensors of a batch that its transforms put others in place of: a cast
// does, or a crop. The next batch is read into them; without them it would get
// new ones each time.
// Thread-safety: thread-compatible. Cost: O(leaves) look-ups; allocates nothing
// for batches of the same leaves.
class ReplacedLeaves {
 public:
  // Before a batch is read: those that nobody else holds take the places of
  // leaves of another dtype or shape. `dropped`, unless it is null, gets those
  // that are given up, as work on a device may still use them.
  void PutBack(TensorDict* batch, std::vector<Tensor>* dropped = nullptr);
  // Before its transforms, and after them.
  void BeginTransforms(const TensorDict& batch);
  void EndTransforms(const TensorDict& batch);

 private:
  struct Leaf {
    std::string key;
    Tensor tensor;  // Invalid: it was not replaced.
  };
  // How many leaves of the batch that are no others of leaves_ have its bytes.
  int64_t HoldersIn(const Leaf& leaf, const Tensor& tensor,
                    const TensorDict& batch) const;

  std::vector<Leaf> leaves_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_REPLACED_LEAVES_H_
