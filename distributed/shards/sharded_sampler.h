// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_SHARDS_SHARDED_SAMPLER_H_
#define RILL_DISTRIBUTED_SHARDS_SHARDED_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/remote_sampler.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Tables of several replay servers as one: each batch has rows of all of them,
// in shares of their sizes. Collectors write each to one shard, by a
// RemoteSink.
//
// A batch of B rows has B * size / (sum of sizes) of each shard, rounded up or
// down so that the mean over batches is exact. They come in the order of the
// shards. A shard that is lost is left out, and the others give its rows; Stats
// has the error. It takes part again when its address answers. While none
// answers, a call tries until RemoteServer::timeout.
//
// Priorities go back to the start of the server that drew the row
// (`index_server`). Those of a server that is away, or has begun anew, are
// stale. Tables with priorities draw by these within a shard, and their weights
// are those within it.
//
// Reproducible: a fixed set of shards that are not written to meanwhile gives
//   the same batches for the same seed.
// Thread-safety: thread-safe. Samples and updates go side by side, each one at
// a
//   time.
//
// Example (ShardedSamplerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto sampler,
//       ShardedSampler::Create({.shards = {{.transport = transport,
//                                           .address = "shard-0"},
//                                          {.transport = transport,
//                                           .address = "shard-1"}},
//                               .batch_size = 256}));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, sampler->Sample());
//   RILL_RETURN_IF_ERROR(sampler->UpdatePriorities(batch, td_errors));
class ShardedSampler {
 public:
  struct Options {
    std::vector<RemoteServer> shards = {};  // [1, 1024].
    std::string table = "replay";
    int64_t batch_size = 0;  // >= 1, of single rows.
    int64_t ahead = 2;       // Batches on their way between calls; [0, 64].
    uint64_t seed = 0;       // Of how the rest of a batch is shared.
  };
  struct Shard {
    int64_t size = 0;  // As it said last.
    int64_t rows = 0;  // That it gave.
    int64_t connects = 0;
    absl::Status status;  // OK: takes part.
  };
  struct Stats {
    std::vector<Shard> shards = {};
    int64_t batches = 0;
    int64_t stale_rows = 0;  // Of updates.
  };

  // INVALID_ARGUMENT names the option. Does not connect yet.
  static absl::StatusOr<std::unique_ptr<ShardedSampler>> Create(
      const Options& options);
  ~ShardedSampler();

  // FAILED_PRECONDITION where all shards that answer are empty.
  absl::StatusOr<TensorDict> Sample();
  // One priority a row, or one for all.
  absl::Status UpdatePriorities(const TensorDict& sample,
                                absl::Span<const float> priorities);
  // All updates have arrived.
  absl::Status Flush();

  Stats GetStats() const;

 private:
  class Link;
  // A batch that was asked for.
  struct Batch {
    std::map<size_t, std::vector<TensorDict>> parts = {};  // By shard.
    int64_t missing = 0;  // Rows that are neither here nor on their way.
    int64_t awaited = 0;  // Parts that are on their way.
  };

  explicit ShardedSampler(const Options& options);

  // Asks the shards for what `batch` lacks. Errors where none takes part.
  absl::Status Ask(const std::shared_ptr<Batch>& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes one part of `batch`, and those of others that come before it.
  absl::Status TakePart(Batch* batch, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<TensorDict> TakeBatch(absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Rows of each shard for `rows` more, by their sizes.
  std::vector<int64_t> SharesOf(int64_t rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  mutable absl::Mutex mu_;
  std::vector<std::unique_ptr<Link>> links_ ABSL_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Batch>> asked_ ABSL_GUARDED_BY(mu_);
  uint64_t splits_ ABSL_GUARDED_BY(mu_) = 0;  // Numbers of draws of shares.
  int64_t batches_ ABSL_GUARDED_BY(mu_) = 0;
  mutable absl::Mutex updates_mu_;
  std::vector<std::unique_ptr<RemoteSampler>> updates_;  // By shard.
  int64_t stale_rows_ ABSL_GUARDED_BY(updates_mu_) = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_SHARDS_SHARDED_SAMPLER_H_
