// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_DEATHS_H_
#define RILL_COLLECTORS_WORKERS_WORKER_DEATHS_H_

#include <cstdint>
#include <map>
#include <vector>

namespace rill {

// How often, and why, workers of a collector have ended though it wanted them.
// Each death has one cause, and is also a line in the log (absl/log, WARNING).
struct WorkerDeaths {
  // Processes that ended by themselves: by the number of the signal (11 is
  // SIGSEGV; 9 also where the system is short of memory), or the exit status.
  std::map<int, int64_t> by_signal = {};
  std::map<int, int64_t> by_exit_status = {};
  // Killed past start_timeout, batch_timeout or step_timeout.
  int64_t timeouts = 0;
  // Processes that ended after `new` had found no memory, as under
  // max_worker_bytes: by whatever signal, or by themselves where their parts
  // threw std::bad_alloc.
  int64_t memory = 0;
  int64_t others = 0;  // As parts that could not be made.
  std::vector<int64_t> by_worker = {};

  int64_t total() const;
};

namespace workers_internal {

enum class DeathCause { kItself, kTimeout, kMemory, kOther };

struct WorkerDeath {
  int64_t worker = 0;
  DeathCause cause = DeathCause::kOther;
  // kItself: as waitpid gives it; of a thread none.
  int status = 0;
  bool is_process = true;
};

void CountDeath(const WorkerDeath& death, WorkerDeaths* deaths);

}  // namespace workers_internal
}  // namespace rill

#endif  // RILL_COLLECTORS_WORKERS_WORKER_DEATHS_H_
