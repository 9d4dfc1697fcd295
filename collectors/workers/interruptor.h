// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_INTERRUPTOR_H_
#define RILL_COLLECTORS_WORKERS_INTERRUPTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/sparse_file.h"
#include "rill/flow/channel/anonymous_memory.h"

namespace rill::workers_internal {

// Tells workers to end their batches early: a number in memory that processes
// share. Batches belong to rounds, which are counted from 1, and Interrupt
// names the newest round whose batches end. So a worker that looks late, at its
// batch of the next round, makes that one whole.
//
// Thread-safety: thread-safe, also across processes.
// Cost: IsInterrupted is one relaxed load.
class Interruptor {
 public:
  // RESOURCE_EXHAUSTED where there is no memory or no descriptor left.
  static absl::StatusOr<std::unique_ptr<Interruptor>> Create();
  // By the descriptor of another one, which is now this one's.
  // INVALID_ARGUMENT where it is something else.
  static absl::StatusOr<std::unique_ptr<Interruptor>> Attach(int fd);

  int fd() const { return memory_->fd(); }

  // Batches of rounds up to `round` end after the step at hand. A lower number
  // than one before changes nothing. Fault point "interruptor.interrupted",
  // once workers can see it; its status is ignored.
  void Interrupt(int64_t round);
  bool IsInterrupted(int64_t round) const {
    return last_->load(std::memory_order_relaxed) >= round;
  }

 private:
  explicit Interruptor(
      std::unique_ptr<channel_internal::AnonymousMemory> memory)
      : memory_(std::move(memory)) {}
  absl::Status Map(absl::string_view caller);

  const std::unique_ptr<channel_internal::AnonymousMemory> memory_;
  std::shared_ptr<AddressRange> range_;
  std::atomic<int64_t>* last_ = nullptr;  // In the memory.
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_INTERRUPTOR_H_
