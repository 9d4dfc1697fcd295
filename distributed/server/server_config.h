// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_SERVER_SERVER_CONFIG_H_
#define RILL_DISTRIBUTED_SERVER_SERVER_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/distributed/replay/replay_service.h"

namespace rill {

// The settings of a replay server, from a text in JSON:
//
//   {
//     "listen": "127.0.0.1:7070",
//     "checkpoint": {"directory": "checkpoint", "every_seconds": 600},
//     "metrics_file": "replay.prom",
//     "tables": {
//       "replay": {
//         "capacity": 1000000,
//         "lanes": 8,
//         "batch_size": 256,
//         "seed": 1,
//         "storage": {"kind": "memmap", "directory": "rows"},
//         "sampler": {"kind": "prioritized", "alpha": 0.6, "beta": 0.4},
//         "unit": {"kind": "n_step", "steps": 3, "gamma": 0.99},
//         "rate_limiter": {"samples_per_insert": 4, "min_size": 1000,
//                          "error_buffer": 8000, "timeout_seconds": 1}
//       }
//     }
//   }
//
// A table wants its `capacity` in rows; all else has a default. That is one
// lane, no batch size, seed 0, and rows in memory. Single rows are drawn
// uniformly, a new row goes in the place of the oldest, and there is no rate
// limiter.
// - storage: `memory`; `memmap` with a `directory` of its own, whose files hold
//   more rows than memory. Parse opens the storage that is there, with its
//   rows. Those of a checkpoint take their place, as it also says what clients
//   have written. Without one, clients count all their rows as lost, and writes
//   that had no reply yet may come twice.
// - writer: `round_robin`; `top_k` with `k`, `rank_key` and `reduction` (`sum`,
//   `mean`, `median`, `min`, `max`); `removing` with the `remover` `fifo`,
//   `lifo`, `uniform`, `min_heap` or `max_heap`. The last two of one lane and
//   of samplers of single rows.
// - sampler: `uniform`; `prioritized` with `alpha`, `beta`, `epsilon` and
//   `stratified`; `without_replacement` with `drop_last`; `fifo`, `lifo`,
//   `min_heap`, `max_heap`.
// - unit: `n_step` with `steps` and `gamma`; `slices` with `length`;
// `sequences`
//   with `length`, `burn_in` and `period`. The last two of uniform and
//   prioritized samplers.
// - rate_limiter: RateLimiter::SampleToInsertRatio, or MinSize where
//   `samples_per_insert` is missing. A call waits `timeout_seconds` for it.
// Other buffers are made in C++ (ReplayService::Create).
struct ServerConfig {
  std::string listen = {};                // "": the engine chooses.
  std::string checkpoint_directory = {};  // "": none.
  absl::Duration checkpoint_every = absl::InfiniteDuration();
  std::string metrics_file = {};  // "": none.
  ReplayService::TableOptions tables = {};

  // INVALID_ARGUMENT names the field by its path; DATA_LOSS where the text is
  // no JSON. Errors of MemmapStorage::Create and Open, as where another process
  // has the directory.
  static absl::StatusOr<ServerConfig> Parse(absl::string_view json);
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_SERVER_SERVER_CONFIG_H_
