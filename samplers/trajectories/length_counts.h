// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_LENGTH_COUNTS_H_
#define RILL_SAMPLERS_TRAJECTORIES_LENGTH_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace rill::samplers_internal {

// Lengths of small numbers, and the greatest of them.
//
// Thread-safety: thread-compatible.
// Cost: Set O(log lengths that differ): of R rows in all those are at most
//   sqrt(2 R). 8 bytes a member.
class LengthCounts {
 public:
  // `member` and `length` >= 0; 0: it is none any more.
  void Set(int32_t member, int64_t length) {
    const auto at = static_cast<size_t>(member);
    if (at >= lengths_.size()) {
      if (length == 0) return;
      lengths_.resize(at + 1, 0);
    }
    if (lengths_[at] == length) return;
    if (lengths_[at] > 0) {
      const auto old = counts_.find(lengths_[at]);
      if (--old->second == 0) counts_.erase(old);
    }
    if (length > 0) ++counts_[length];
    lengths_[at] = length;
  }
  // 0 where there is none.
  int64_t longest() const {
    return counts_.empty() ? 0 : counts_.rbegin()->first;
  }
  void Clear() {
    lengths_.clear();
    counts_.clear();
  }
  int64_t memory_bytes() const {
    return static_cast<int64_t>(lengths_.capacity() * sizeof(int64_t) +
                                counts_.size() * 48);
  }

 private:
  std::vector<int64_t> lengths_;  // By member.
  std::map<int64_t, int64_t> counts_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_TRAJECTORIES_LENGTH_COUNTS_H_
