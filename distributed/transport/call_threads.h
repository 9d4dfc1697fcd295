// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_CALL_THREADS_H_
#define RILL_DISTRIBUTED_TRANSPORT_CALL_THREADS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace rill {

// Threads that calls of services run on, for engines: as many as ever had work
// at once. They stay.
// Thread-safety: thread-safe.
// Cost: a hand-over to a thread that waits, or a new thread.
class CallThreads {
 public:
  using Work = std::function<void()>;
  // A thread without work does this until has_work(), or for as long as it
  // likes; then it waits.
  using Idle = std::function<void(absl::FunctionRef<bool()> has_work)>;

  explicit CallThreads(Idle idle = nullptr) : idle_(std::move(idle)) {}
  // Waits for all work, on another thread than these.
  ~CallThreads();

  // Waits for nobody. Work is destroyed where it ran.
  void Run(Work work);

 private:
  void Loop();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !ready_.empty() || is_stopping_;
  }

  const Idle idle_;
  absl::Mutex mu_;
  std::deque<Work> ready_ ABSL_GUARDED_BY(mu_);
  size_t num_idle_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_CALL_THREADS_H_
