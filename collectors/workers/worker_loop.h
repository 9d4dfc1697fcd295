// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_LOOP_H_
#define RILL_COLLECTORS_WORKERS_WORKER_LOOP_H_

#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_socket.h"

namespace rill::workers_internal {

// The errors that the thread of a worker has told by messages, which have their
// text alone: here they have their payloads too. Thread-safety: thread-safe.
class WorkerErrors {
 public:
  // Before its message is sent.
  void Add(absl::Status error) {
    const absl::MutexLock lock(&mutex_);
    errors_.push_back(std::move(error));
  }
  // That of the next message.
  absl::Status Take() {
    const absl::MutexLock lock(&mutex_);
    absl::Status error = std::move(errors_.front());
    errors_.pop_front();
    return error;
  }

 private:
  absl::Mutex mutex_;
  std::deque<absl::Status> errors_ ABSL_GUARDED_BY(mutex_);
};

// The loop of a worker. It makes its parts, and collects as many batches as it
// is asked for into the channel that it is given. It ends when the collector's
// end of the socket closes. An error of the parts goes to the collector; the
// worker stays, and tries again when it is asked again. So do exceptions of the
// parts. `is_process`: it is the only one of this process, which tells the
// collector where `new` finds no memory, and ends if the parts fail for that.
// `errors` gets those that it sends; null: nobody does.
// Thread-safety: thread-safe; a call blocks its thread.
void RunWorker(WorkerSocket socket, const WorkerFunction& make,
               bool is_process = false, WorkerErrors* errors = nullptr);

// Calls it in a thread; `make` outlives that. RESOURCE_EXHAUSTED where the
// system starts no more threads.
absl::StatusOr<std::thread> StartWorkerThread(
    WorkerSocket socket, const WorkerFunction& make,
    std::shared_ptr<WorkerErrors> errors);

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_LOOP_H_
