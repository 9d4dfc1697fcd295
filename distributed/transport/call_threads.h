// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_CALL_THREADS_H_
#define RILL_DISTRIBUTED_TRANSPORT_CALL_THREADS_H_

#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"

namespace rill {

// Threads that calls of services run on, for engines: as many as ever had work
// at once. They stay.
//
// The destructor waits for all work. Where it comes out of such work, as where
// a service had the last of an engine, that thread ends behind its work, alone.
// Thread-safety: thread-safe.
// Cost: a hand-over to a thread that waits, or a new thread.
class CallThreads {
 public:
  using Work = std::function<void()>;
  // A thread without work does this until has_work(), or for as long as it
  // likes; then it waits.
  using Idle = std::function<void(absl::FunctionRef<bool()> has_work)>;

  explicit CallThreads(Idle idle = nullptr);
  ~CallThreads();

  // Waits for nobody. Work is destroyed where it ran.
  void Run(Work work);

 private:
  class State;

  const std::shared_ptr<State> state_;  // The threads have it too.
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_CALL_THREADS_H_
