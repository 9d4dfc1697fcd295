// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_BOARD_H_
#define RILL_COLLECTORS_WORKERS_WORKER_BOARD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/collectors/workers/shared_area.h"

namespace rill::workers_internal {

// Numbers that a collector and its workers write and read without a message, in
// memory that they share.
//
// From the collector: which batches are to end early. Batches belong to rounds,
// which are counted from 1, and Interrupt names the newest round whose batches
// end. So a worker that looks late, at its batch of the next round, makes that
// one whole.
// From each worker: since when it makes the step at hand, whether it found no
// memory, and how many frames its last batches took the run to have.
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

  // A step of the worker begins, at a time of Clock::Steady, which processes
  // share. EndSteps: it makes no batch now.
  void BeginStep(int64_t worker, absl::Time now) {
    entry(worker).step_began.store(absl::ToUnixNanos(now),
                                   std::memory_order_relaxed);
  }
  void EndSteps(int64_t worker) {
    entry(worker).step_began.store(0, std::memory_order_relaxed);
  }
  // When the step at hand has begun; InfiniteFuture: there is none.
  absl::Time step_began(int64_t worker) const {
    const int64_t at = entry(worker).step_began.load(std::memory_order_relaxed);
    return at == 0 ? absl::InfiniteFuture() : absl::FromUnixNanos(at);
  }
  // Whether the worker has found no memory since its last batch.
  void NoteMemory(int64_t worker, bool has_none) {
    entry(worker).has_no_memory.store(has_none, std::memory_order_relaxed);
  }
  bool HasNoMemory(int64_t worker) const {
    return entry(worker).has_no_memory.load(std::memory_order_relaxed);
  }
  // The frames of the run before the worker's batch of this number
  // (SyncCollector::RunFrames::before); of its last kBatches batches.
  static constexpr int64_t kBatches = 2;
  void NoteRun(int64_t worker, int64_t sequence, int64_t before) {
    entry(worker).run_before[sequence % kBatches].store(
        before, std::memory_order_relaxed);
  }
  int64_t run_before(int64_t worker, int64_t sequence) const {
    return entry(worker).run_before[sequence % kBatches].load(
        std::memory_order_relaxed);
  }
  // Another worker begins under this number.
  void Begin(int64_t worker) {
    EndSteps(worker);
    NoteMemory(worker, false);
  }

 private:
  struct alignas(64) Head {
    std::atomic<int64_t> last_round;
  };
  // On a cache line of its own: its worker writes it in each step.
  struct alignas(64) Entry {
    std::atomic<int64_t> step_began;  // In ns; 0: none is at hand.
    std::atomic<bool> has_no_memory;
    std::atomic<int64_t> run_before[kBatches];
  };

  explicit WorkerBoard(std::unique_ptr<SharedArea> area)
      : area_(std::move(area)) {}
  static int64_t BytesOf(int64_t workers);
  // Fresh memory reads as zeros, which are no round, no step, and memory.
  Head& head() const { return *reinterpret_cast<Head*>(area_->data()); }
  Entry& entry(int64_t worker) const {
    return reinterpret_cast<Entry*>(area_->data() + sizeof(Head))[worker];
  }

  const std::unique_ptr<SharedArea> area_;
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_BOARD_H_
