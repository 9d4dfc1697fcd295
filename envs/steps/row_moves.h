// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_ROW_MOVES_H_
#define RILL_ENVS_STEPS_ROW_MOVES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensors/tensor.h"

namespace rill::envs_internal {

// Copies rows between leaves [lanes, ...] on a device, and sets rows to zero.
// Thread-safety: thread-compatible.
// Cost: Run is one gather and one scatter over all leaves.
class RowMoves {
 public:
  // Contiguous leaves of `lanes` rows each, in pairs of one size.
  void Move(const Tensor& from, const Tensor& to) {
    moved_.push_back({from, to});
  }
  void Clear(const Tensor& leaf) { cleared_.push_back(leaf); }
  // After the leaves: allocates. Errors of the device.
  absl::Status Bind(int64_t lanes, Device device);

  // Takes the place of the i-th `from`.
  void SetFrom(size_t i, const Tensor& from) { moved_[i].from = from; }

  // Enqueues the moves of these rows.
  absl::Status Run(absl::Span<const int64_t> rows, const Stream& stream) const;

 private:
  struct Pair {
    Tensor from;
    Tensor to;
    Tensor between = {};  // Rows on their way.
  };

  int64_t WidthOf(const Tensor& leaf) const {
    return leaf.size_bytes() / lanes_;
  }

  int64_t lanes_ = 1;
  std::vector<Pair> moved_;
  std::vector<Tensor> cleared_;
  Tensor zeros_;  // A row for each lane.
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_STEPS_ROW_MOVES_H_
