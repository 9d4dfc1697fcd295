// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CHANNEL_PROCESS_ID_H_
#define RILL_FLOW_CHANNEL_PROCESS_ID_H_

#include <sys/types.h>

#include <cstdint>

namespace rill::channel_internal {

// A process of this machine, told apart from a later one that got its number:
// the number, and when the process started (the low half of the kernel's
// ticks). Goes into one word, so that processes can leave theirs in memory that
// they share. Where there is no /proc, the number alone.
// Thread-safety: immutable.
class ProcessId {
 public:
  ProcessId() = default;  // Of no process.
  static ProcessId Mine();

  uint64_t word() const { return word_; }
  static ProcessId OfWord(uint64_t word) { return ProcessId(word); }
  pid_t pid() const { return static_cast<pid_t>(word_ & 0xffffffff); }

  // False from its end on, also while its parent has not waited for it. Costs
  // some microseconds. Processes are seen from one PID namespace.
  bool IsAlive() const;

  friend bool operator==(const ProcessId&, const ProcessId&) = default;

 private:
  explicit ProcessId(uint64_t word) : word_(word) {}

  uint64_t word_ = 0;
};

}  // namespace rill::channel_internal

#endif  // RILL_FLOW_CHANNEL_PROCESS_ID_H_
