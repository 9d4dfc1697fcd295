// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_POLICY_AGE_FILTER_H_
#define RILL_TRANSFORMS_EPISODES_POLICY_AGE_FILTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Drops rows of dimension 0 that a policy of long ago has made, after reads: a
// row stays where the current version - its version <= max_policy_lag. So a
// batch may be smaller than what was asked for. In a row with several versions,
// a sequence, the oldest counts. TorchRL's PolicyAgeFilter; that one also drops
// before writes.
//
// Shapes: `policy_version_key` [*batch, ...]. A batch without a dimension stays
//   as it is.
// DTypes: uint8, int8, int16, int32 or int64.
// State: "newest" int64 [], the newest version in the batches so far, which is
//   the current one where Options give none.
// Thread-safety: immutable; current_version is called by the thread that reads.
// Cost: O(rows), and a copy of the rows that stay where any goes.
//
// Example (SequencePartsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto filter,
//                         PolicyAgeFilter::Create({.max_policy_lag = 2}));
struct PolicyAgeFilter {
  struct Options {
    int64_t max_policy_lag = 0;  // >= 0
    // Asked for each batch. Null: the newest version that was seen.
    std::function<int64_t()> current_version = nullptr;
    std::string policy_version_key = "policy_version";
    // False: a batch without versions goes through whole.
    bool strict = false;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_POLICY_AGE_FILTER_H_
