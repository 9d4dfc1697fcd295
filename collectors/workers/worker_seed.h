// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_SEED_H_
#define RILL_COLLECTORS_WORKERS_WORKER_SEED_H_

#include <cstdint>

namespace rill {

// The seed of a worker, from that of the run (MultiCollectorOptions::seed) and
// how often the worker was started anew: that of its environments, transforms,
// random actions and ActContext. Runs of different seeds share no worker's
// episodes, and no worker draws again what the one that it replaces has drawn.
// That of worker 0 at its first start is the run's own, as of a SyncCollector.
//
// Source: 64 bits of the counter-based generator (base/rng.h), of `run` as its
// seed. Two runs have a seed in common by chance, once in 2^64 pairs.
uint64_t WorkerSeed(uint64_t run, int64_t worker, int64_t restarts = 0);

}  // namespace rill

#endif  // RILL_COLLECTORS_WORKERS_WORKER_SEED_H_
