// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/child_watch.h"

#include <sched.h>

#include <algorithm>

#include "rill/base/clock.h"

namespace rill::gymnasium_internal {

constexpr absl::Duration kLook = absl::Microseconds(50);

ChildWatch::ChildWatch(int64_t children, bool may_pin) : children_(children) {
  cpu_set_t set;
  if (children < 2 || !may_pin) return;
  // A machine of more processors than the set has is an error: this is off.
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors_.push_back(i);
  }
  if (static_cast<int64_t>(processors_.size()) < children) processors_.clear();
}

void ChildWatch::Bind(std::byte* memory) {
  states_ = reinterpret_cast<std::atomic<int32_t>*>(memory);
  host() = is_on() ? kAwake : kOff;
}

void ChildWatch::Place(int64_t child, pid_t pid) const {
  if (!is_on()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = child; i < processors_.size(); i += children_) {
    CPU_SET(processors_[i], &set);
  }
  // Where it may not, the child stays where the kernel puts it.
  sched_setaffinity(pid, sizeof(set), &set);
}

void ChildWatch::BeginStep() {
  if (!is_on()) return;
  until_ = absl::InfiniteFuture();
  for (int64_t i = 0; i < children_; ++i) {
    states_[i].store(kCalled, std::memory_order_relaxed);
  }
  const auto here =
      std::find(processors_.begin(), processors_.end(), sched_getcpu());
  const bool is_shared = here != processors_.end() &&
                         static_cast<int64_t>(processors_.size()) == children_;
  host().store(
      is_shared ? static_cast<int32_t>(here - processors_.begin()) : kAwake,
      std::memory_order_relaxed);
}

bool ChildWatch::IsNear() {
  if (!is_on()) return false;
  const int32_t host_child = host().load(std::memory_order_relaxed);
  bool is_one_done = false;
  for (int64_t i = 0; i < children_; ++i) {
    const int32_t state = states_[i].load(std::memory_order_relaxed);
    // It needs the processor that this process would hold.
    if (state == kCalled || (state == kWorks && i == host_child)) return false;
    is_one_done |= state >= kAnswers;
  }
  if (!is_one_done) return false;
  host().store(kAwake, std::memory_order_relaxed);
  const absl::Time now = Clock::Steady().Now();
  if (until_ == absl::InfiniteFuture()) until_ = now + kLook;
  return now < until_;
}

}  // namespace rill::gymnasium_internal
