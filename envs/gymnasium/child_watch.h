// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_GYMNASIUM_CHILD_WATCH_H_
#define RILL_ENVS_GYMNASIUM_CHILD_WATCH_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace rill::gymnasium_internal {

// Lets this process and its children wait awake for each other, for up to 50 us
// at a time. A process that sleeps takes 10 to 20 us to go on, and is slower
// then.
//
// It is on for two children or more that may be pinned, where this process may
// use as many processors. Each child then has processors of its own: a kernel
// that wakes two children on one processor may leave them there for good. With
// as many children as processors this process shares one with a child, the
// host. The host sleeps as soon as it has answered. The others answer after it,
// so that they do not wake this process while it has no processor.
//
// All of it are hints in memory that the children share (gymnasium_child.py
// reads them): messages alone order the rest.
// Thread-safety: thread-compatible. Cost: O(children) a call.
class ChildWatch {
 public:
  // The part of a child. It is kCalled from before its command is sent.
  enum State : int32_t { kCalled, kWorks, kAnswers, kDone };
  // In place of the host.
  static constexpr int32_t kAwake = -1;  // Nobody need wait for one.
  static constexpr int32_t kOff = -2;    // All sleep at once.

  ChildWatch(int64_t children, bool may_pin);

  // A state of each child, and the host.
  static int64_t BytesFor(int64_t children) {
    return (children + 1) * static_cast<int64_t>(sizeof(int32_t));
  }
  void Bind(std::byte* memory);

  // Gives the child its processors, where this is on.
  void Place(int64_t child, pid_t pid) const;
  // To be called before the children get their commands.
  void BeginStep();
  // True if their answers are so near that this process had better look for
  // them again than sleep.
  bool IsNear();

 private:
  bool is_on() const { return !processors_.empty(); }
  std::atomic<int32_t>& host() { return states_[children_]; }

  const int64_t children_;
  std::vector<int> processors_;  // Empty: it is off.
  std::atomic<int32_t>* states_ = nullptr;
  absl::Time until_;
};

}  // namespace rill::gymnasium_internal

#endif  // RILL_ENVS_GYMNASIUM_CHILD_WATCH_H_
