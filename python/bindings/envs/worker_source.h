// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_WORKER_SOURCE_H_
#define RILL_PYTHON_BINDINGS_ENVS_WORKER_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"

namespace rill::python {

// Collectors whose workers are threads. The interpreter's lock is held.

// The first of so many numbers that no collector of this process has had: rows
// of a closed one and those of the next are no trajectory.
int64_t NewProducers(int64_t count);

// As errors have it.
const char* NameOfWorkers(bool is_sync);

struct WorkerArguments {
  // A worker for each EnvPart, which it takes.
  const nanobind::list& envs;
  // As PythonPolicy's, one a worker; empty: actions are random.
  const nanobind::list& acts;
  const TensorDictSpec& outputs;
  const nanobind::dict& options;       // MultiCollectorOptions, by their names.
  bool is_sync;                        // A batch is of all workers.
  std::function<void()> begin_thread;  // Called first in each worker's.
  // Policies fail once it is true. It outlives them.
  const std::atomic<bool>* is_closed;
  std::function<bool()> is_interrupted;  // MultiCollectorOptions' own.
};
struct WorkerSource {
  absl::StatusOr<std::unique_ptr<Source>> source;
  const MultiSyncCollector* rounds = nullptr;  // The source, where it is one.
  int64_t frames_per_batch = 0;
};
// Waits for the workers without the lock. Throws INVALID_ARGUMENT of arguments
// that are refused, whose environments stay their owner's.
WorkerSource MakeWorkerSource(const WorkerArguments& given);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_WORKER_SOURCE_H_
