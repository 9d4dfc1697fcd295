// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/producers.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/flow/trajectory_id.h"

namespace rill {
namespace {

ABSL_CONST_INIT absl::Mutex mutex(absl::kConstInit);

// First and count of those that somebody has.
std::multiset<std::pair<int64_t, int64_t>>& Taken()
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  static auto* const taken = new std::multiset<std::pair<int64_t, int64_t>>();
  return *taken;
}

}  // namespace

absl::StatusOr<ProducerNumbers> ProducerNumbers::Lowest(int64_t count) {
  absl::MutexLock lock(&mutex);
  int64_t lowest = 0;
  for (const auto& [first, taken] : Taken()) {
    if (first - lowest >= count) break;
    lowest = std::max(lowest, first + taken);
  }
  if (lowest > kMaxTrajectoryProducer + 1 - count) {
    return ResourceExhausted("ProducerNumbers::Lowest: got ", Taken().size(),
                             " sources, which leave no ", count,
                             " numbers in a row, want fewer sources that live "
                             "at a time");
  }
  Taken().insert({lowest, count});
  return ProducerNumbers(lowest, count);
}

ProducerNumbers ProducerNumbers::Of(int64_t first, int64_t count) {
  absl::MutexLock lock(&mutex);
  Taken().insert({first, count});
  return ProducerNumbers(first, count);
}

ProducerNumbers::~ProducerNumbers() {
  if (count_ == 0) return;
  absl::MutexLock lock(&mutex);
  Taken().erase(Taken().find({first_, count_}));
}

uint64_t NewSource() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace rill
