// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_deaths.h"

#include <sys/wait.h>

#include <cstddef>
#include <numeric>

namespace rill {

int64_t WorkerDeaths::total() const {
  return std::accumulate(by_worker.begin(), by_worker.end(), int64_t{0});
}

namespace workers_internal {

void CountDeath(const WorkerDeath& death, WorkerDeaths* deaths) {
  const auto worker = static_cast<size_t>(death.worker);
  if (worker >= deaths->by_worker.size()) deaths->by_worker.resize(worker + 1);
  ++deaths->by_worker[worker];
  if (death.cause == DeathCause::kTimeout) {
    ++deaths->timeouts;
  } else if (death.cause == DeathCause::kMemory) {
    ++deaths->memory;
  } else if (death.cause == DeathCause::kOther || !death.is_process) {
    ++deaths->others;
  } else if (WIFSIGNALED(death.status)) {
    ++deaths->by_signal[WTERMSIG(death.status)];
  } else {
    ++deaths->by_exit_status[WEXITSTATUS(death.status)];
  }
}

}  // namespace workers_internal
}  // namespace rill
