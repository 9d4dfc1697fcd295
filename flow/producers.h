// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_PRODUCERS_H_
#define RILL_FLOW_PRODUCERS_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"

namespace rill {

// Numbers of producers (WriteInfo::producer), [first, first + count), that a
// source of this process has as long as this lives.
// Thread-safety: const members; the numbers of the process are guarded.
// Cost: O(sources that live).
class ProducerNumbers {
 public:
  // The lowest in a row that nobody in this process has now: they depend on the
  // order of the calls alone. `count` > 0. RESOURCE_EXHAUSTED where there are
  // not so many.
  static absl::StatusOr<ProducerNumbers> Lowest(int64_t count = 1);
  // Those from `first` on, or, where nobody has chosen that, the lowest.
  static absl::StatusOr<ProducerNumbers> OfOrLowest(
      std::optional<int64_t> first, int64_t count = 1) {
    if (!first.has_value()) return Lowest(count);
    return Of(*first, count);
  }
  // Those that a caller has chosen, in [0, kMaxTrajectoryProducer]. Others may
  // have them too.
  static ProducerNumbers Of(int64_t first, int64_t count = 1);

  ProducerNumbers() = default;  // None.
  ~ProducerNumbers();
  ProducerNumbers(ProducerNumbers&& other) noexcept
      : first_(other.first_), count_(std::exchange(other.count_, 0)) {}
  ProducerNumbers& operator=(ProducerNumbers&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(count_, other.count_);
    return *this;
  }

  int64_t first() const { return first_; }
  int64_t count() const { return count_; }

 private:
  ProducerNumbers(int64_t first, int64_t count)
      : first_(first), count_(count) {}

  int64_t first_ = 0;
  int64_t count_ = 0;
};

// A number for WriteInfo::source, from 1, which nobody else in this process
// ever has.
uint64_t NewSource();

}  // namespace rill

#endif  // RILL_FLOW_PRODUCERS_H_
