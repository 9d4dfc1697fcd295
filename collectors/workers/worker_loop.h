// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_LOOP_H_
#define RILL_COLLECTORS_WORKERS_WORKER_LOOP_H_

#include <thread>

#include "absl/status/statusor.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_socket.h"

namespace rill::workers_internal {

// The loop of a worker. It makes its parts, and collects as many batches as it
// is asked for into the channel that it is given. It ends when the collector's
// end of the socket closes. An error of the parts goes to the collector; the
// worker stays, and tries again when it is asked again. So do exceptions of the
// parts. `is_process`: it is the only one of this process, which tells the
// collector where `new` finds no memory, and ends if the parts fail for that.
// Thread-safety: thread-safe; a call blocks its thread.
void RunWorker(WorkerSocket socket, const WorkerFunction& make,
               bool is_process = false);

// Calls it in a thread; `make` outlives that. RESOURCE_EXHAUSTED where the
// system starts no more threads.
absl::StatusOr<std::thread> StartWorkerThread(WorkerSocket socket,
                                              const WorkerFunction& make);

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_LOOP_H_
