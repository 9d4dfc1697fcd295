// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_board.h"

#include "absl/memory/memory.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"

namespace rill::workers_internal {

// Processes agree on a value without a lock only then.
static_assert(std::atomic<int64_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

int64_t WorkerBoard::BytesOf(int64_t workers) {
  return static_cast<int64_t>(sizeof(Head)) +
         workers * static_cast<int64_t>(sizeof(Entry));
}

absl::StatusOr<std::unique_ptr<WorkerBoard>> WorkerBoard::Create(
    int64_t workers) {
  RILL_ASSIGN_OR_RETURN(
      auto area, SharedArea::Create("WorkerBoard::Create", "rill_worker_board",
                                    BytesOf(workers)));
  return absl::WrapUnique(new WorkerBoard(std::move(area)));
}

absl::StatusOr<std::unique_ptr<WorkerBoard>> WorkerBoard::Attach(
    int fd, int64_t workers) {
  RILL_ASSIGN_OR_RETURN(auto area, SharedArea::Attach("WorkerBoard::Attach", fd,
                                                      BytesOf(workers)));
  return absl::WrapUnique(new WorkerBoard(std::move(area)));
}

void WorkerBoard::Interrupt(int64_t round) {
  // Relaxed: the number orders nothing else, and a worker that sees it a step
  // later makes one step more.
  int64_t before = head().last_round.load(std::memory_order_relaxed);
  while (before < round) {
    if (head().last_round.compare_exchange_weak(before, round,
                                                std::memory_order_relaxed)) {
      FaultPoint("interruptor.interrupted", "").IgnoreError();
      return;
    }
  }
}

}  // namespace rill::workers_internal
