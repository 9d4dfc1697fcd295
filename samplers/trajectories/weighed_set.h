// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_WEIGHED_SET_H_
#define RILL_SAMPLERS_TRAJECTORIES_WEIGHED_SET_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace rill::samplers_internal {

// A set of small numbers, each with a weight > 0: one of them uniformly, or by
// weight. Integer sums, so that there is nothing to drift.
//
// The members lie densely, in an order that is a pure function of the calls:
// a new one comes last, the last one takes the place of one that goes. All
// weights laid end to end in that order are the range [0, total()).
//
// Thread-safety: thread-compatible.
// Cost: Set and Find O(log16 size), the others O(1). About 17 bytes a member.
class WeighedSet {
 public:
  // The member that a number of [0, total()) falls into, and `rest` in [0, its
  // weight).
  struct Hit {
    int32_t member = 0;
    int64_t rest = 0;
  };

  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  int64_t total() const { return total_; }
  // In their order.
  absl::Span<const int32_t> members() const { return members_; }

  // Gives `member` >= 0 a weight >= 0; with 0 it is none any more.
  void Set(int32_t member, int64_t weight);
  // 0 for those that are no members.
  int64_t WeightOf(int32_t member) const;
  // `n` in [0, total()).
  Hit Find(int64_t n) const;
  // Brings the members into another order; `order` has each of them once.
  void Reorder(absl::Span<const int32_t> order);
  void Clear();

  int64_t memory_bytes() const;

 private:
  void AddAt(int64_t position, int64_t change);
  void PushBack(int32_t member);
  void PopBack();

  std::vector<int32_t> members_;
  std::vector<int32_t> positions_;  // By member; -1 for none.
  // levels_[0][p]: the weight of members_[p]. Above, each number is the sum of
  // 16 below. At least one level, the last of at most 16 numbers.
  std::vector<std::vector<int64_t>> levels_ = {{}};
  int64_t total_ = 0;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_TRAJECTORIES_WEIGHED_SET_H_
