// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_MAIN_H_
#define RILL_COLLECTORS_WORKERS_WORKER_MAIN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "rill/base/process/child_process.h"
#include "rill/collectors/workers/worker.h"

namespace rill {

// Worker processes are the program itself, started again. So a program whose
// collectors use processes calls this first in main, with the functions that
// its workers may run. In a worker it works until the collector has gone, and
// returns the exit status; else it returns nothing, and main goes on.
//
// A worker ends when its parent does, however that ends.
//
// docs/collectors.md shows a whole program:
//   const std::optional<int> worker =
//       WorkerMain(argc, argv, {{"cart_pole", MakeWorker}});
//   if (worker.has_value()) return *worker;
std::optional<int> WorkerMain(
    int argc, char** argv,
    const std::map<std::string, WorkerFunction>& workers);

namespace workers_internal {

// Starts this program as the worker `name`. It answers at `socket`, and ends
// when the other end of the pipe `life` closes. `max_bytes` > 0: it gets no
// more memory. FAILED_PRECONDITION where this program has not called
// WorkerMain, INVALID_ARGUMENT where that knows no such worker.
absl::StatusOr<std::unique_ptr<ChildProcess>> StartWorkerProcess(
    const std::string& name, int64_t max_bytes, int socket, int life);

// The function of that name; errors as StartWorkerProcess.
absl::StatusOr<WorkerFunction> FindWorkerFunction(const std::string& name);

}  // namespace workers_internal
}  // namespace rill

#endif  // RILL_COLLECTORS_WORKERS_WORKER_MAIN_H_
