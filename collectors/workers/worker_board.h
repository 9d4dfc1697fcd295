// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_BOARD_H_
#define RILL_COLLECTORS_WORKERS_WORKER_BOARD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/collectors/workers/shared_area.h"

namespace rill::workers_internal {

// Numbers that a collector and its workers write and read without a message, in
// memory that they share.
//
// From the collector: which batches are to end early. Batches belong to rounds,
// which are counted from 1, and Interrupt names the newest round whose batches
// end. So a worker that looks late, at its batch of the next round, makes that
// one whole.
// From each worker: how far it is.
//
// Thread-safety: thread-safe, also across processes.
// Cost: each call is one relaxed access.
class WorkerBoard {
 public:
  // RESOURCE_EXHAUSTED where there is no memory or no descriptor left.
  static absl::StatusOr<std::unique_ptr<WorkerBoard>> Create(int64_t workers);
  // By the descriptor of another one for as many, which is now this one's.
  // INVALID_ARGUMENT where it is something else.
  static absl::StatusOr<std::unique_ptr<WorkerBoard>> Attach(int fd,
                                                             int64_t workers);

  int fd() const { return area_->fd(); }

  // Batches of rounds up to `round` end after the step at hand. A lower number
  // than one before changes nothing. Fault point "interruptor.interrupted",
  // once workers can see it; its status is ignored.
  void Interrupt(int64_t round);
  bool IsInterrupted(int64_t round) const {
    return head().last_round.load(std::memory_order_relaxed) >= round;
  }

  // The worker has made a step.
  void CountStep(int64_t worker) {
    entry(worker).steps.fetch_add(1, std::memory_order_relaxed);
  }
  int64_t steps(int64_t worker) const {
    return entry(worker).steps.load(std::memory_order_relaxed);
  }
  // Whether the worker has found no memory since its last batch. A process that
  // replaces it begins without.
  void NoteMemory(int64_t worker, bool has_none) {
    entry(worker).has_no_memory.store(has_none, std::memory_order_relaxed);
  }
  bool HasNoMemory(int64_t worker) const {
    return entry(worker).has_no_memory.load(std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Head {
    std::atomic<int64_t> last_round;
  };
  // On a cache line of its own: its worker writes it in each step.
  struct alignas(64) Entry {
    std::atomic<int64_t> steps;
    std::atomic<bool> has_no_memory;
  };

  explicit WorkerBoard(std::unique_ptr<SharedArea> area)
      : area_(std::move(area)) {}
  static int64_t BytesOf(int64_t workers);
  // Fresh memory reads as zeros, which are no round, no step and no memory.
  Head& head() const { return *reinterpret_cast<Head*>(area_->data()); }
  Entry& entry(int64_t worker) const {
    return reinterpret_cast<Entry*>(area_->data() + sizeof(Head))[worker];
  }

  const std::unique_ptr<SharedArea> area_;
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_BOARD_H_
