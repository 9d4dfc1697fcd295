// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_LANES_LANE_POOL_H_
#define RILL_ENVS_LANES_LANE_POOL_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/base/wake_signal.h"

namespace rill::envs_internal {

// Threads that stay, and share out the calls of one function: the calling
// thread and threads - 1 others. A round is one call for each i in [0, count).
//
// Thread-safety: thread-compatible; the function is called by several threads
//   at once.
// Cost: a round allocates nothing. Threads look for the next one a few hundred
//   times before they sleep.
class LanePool {
 public:
  // RESOURCE_EXHAUSTED where the system starts no further thread.
  static absl::StatusOr<std::unique_ptr<LanePool>> Create(
      int threads, std::function<void(int64_t i)> call);
  // Calls of a round that no thread has taken yet are left out.
  ~LanePool();
  LanePool(const LanePool&) = delete;
  LanePool& operator=(const LanePool&) = delete;

  // The other threads begin a round, beside the caller.
  void Begin(int64_t count) { Publish(count, count); }
  // Takes a part in the round, and waits for its end.
  void Finish();
  // A whole round. One call is the caller's, who wakes nobody.
  void Run(int64_t count) {
    Publish(count, count - 1);
    Finish();
  }

 private:
  LanePool(int threads, std::function<void(int64_t i)> call)
      : threads_(threads), call_(std::move(call)), work_(threads) {}

  static void* RunThread(void* pool);
  void Publish(int64_t count, int64_t wanted_threads);
  bool TakeSome();

  const int threads_;
  const std::function<void(int64_t i)> call_;
  std::vector<pthread_t> others_;

  // Written between rounds; who takes calls may read it.
  int64_t count_ = 0;
  std::atomic<bool> stops_ = false;
  WakeSignal work_;
  WakeSignal end_{1};
  alignas(64) std::atomic<int64_t> left_ = 0;  // Calls that nobody has taken.
  alignas(64) std::atomic<int64_t> unfinished_ = 0;
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_LANES_LANE_POOL_H_
