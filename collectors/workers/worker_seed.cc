// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_seed.h"

#include "rill/base/rng.h"

namespace rill {
namespace {

// Apart from what collectors draw of their seeds by RngStream::kInit.
constexpr uint16_t kSubstream = 1;

}  // namespace

uint64_t WorkerSeed(uint64_t run, int64_t worker, int64_t restarts) {
  if (worker == 0 && restarts == 0) return run;
  return Rng(run, RngStream::kInit, kSubstream)
      .Bits64(static_cast<uint64_t>(restarts), static_cast<uint32_t>(worker));
}

}  // namespace rill
