// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_SHARDS_SHARDED_SAMPLER_H_
#define RILL_DISTRIBUTED_SHARDS_SHARDED_SAMPLER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
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
#include "rill/distributed/shards/shard_link.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// By what each batch is shared among shards.
enum class ShardShares {
  // Sizes: tables with priorities draw by these within a shard, and their
  // weights are those within it.
  kSize,
  // Sums of priorities (PriorityMass): a draw and its weight are those of one
  // prioritized buffer with the rows of all shards. Tables have priorities, not
  // on a device, and all the same alpha and epsilon.
  kPriorityMass,
};

// Tables of several replay servers as one: each batch has rows of all of them,
// in shares of their sizes or priorities. Collectors write each to one shard,
// by a RemoteSink.
//
// A batch of B rows has B * size / (sum of sizes) of each shard, or the same
// with sums of priorities. It is rounded up or down so that the mean over
// batches is exact. They come in the order of the shards. A shard that is lost
// is left out, and the others give its rows; Stats has the error. It takes part
// again when its address answers. While none answers, a call tries until
// RemoteServer::timeout.
//
// Priorities go back to the start of the server that drew the row
// (`index_server`). Those of a server that is away, or has begun anew, are
// stale.
//
// With kPriorityMass P(i) = v_i / (sum over all shards), and weights are
// (v_i / min) ^ -beta, `min` that of all shards. Both go by what shards said
// with their last replies, so that batches on their way do not know of later
// writes and updates. An update between a shard's draw and its report changes
// that batch's weights. A shard without a share of 64 batches is asked anew.
// One that is lost counts neither in the sum nor in the minimum.
//
// Reproducible: a fixed set of shards that are not written to meanwhile gives
//   the same batches for the same seed.
// Thread-safety: thread-safe. Samples and updates go side by side, each one at
//   a time.
// Cost: a request and a reply a shard and batch; the parts are copied into one
//   batch.
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
    ShardShares shares = ShardShares::kSize;
    // The exponent of weights with kPriorityMass, >= 0; none: that of the
    // tables. Theirs is above 0 then.
    std::optional<double> beta = std::nullopt;
  };
  struct Shard {
    int64_t size = 0;         // As it said last.
    double priority_sum = 0;  // The same, with kPriorityMass.
    int64_t rows = 0;         // That it gave.
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

  // FAILED_PRECONDITION where all shards that answer have nothing to draw, or
  // are no tables for these options.
  absl::StatusOr<TensorDict> Sample();
  // Options::beta from the next Sample on, as where it goes up over a training.
  // INVALID_ARGUMENT of a negative one, and without kPriorityMass.
  absl::Status SetBeta(double beta);
  // One priority a row, or one for all.
  absl::Status UpdatePriorities(const TensorDict& sample,
                                absl::Span<const float> priorities);
  // All updates have arrived.
  absl::Status Flush();

  Stats GetStats() const;

 private:
  using ShardBatch = shards_internal::ShardBatch;

  explicit ShardedSampler(const Options& options);

  // Asks the shards for what `batch` lacks. Errors where none takes part.
  absl::Status Ask(const std::shared_ptr<ShardBatch>& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes one part of `batch`, and those of others that come before it.
  absl::Status TakePart(ShardBatch* batch, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<TensorDict> TakeBatch(absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Rows of each shard for `rows` more.
  std::vector<int64_t> SharesOf(int64_t rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes weights within shards those of all.
  absl::Status ReweighAll(ShardBatch* batch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  mutable absl::Mutex mu_;
  std::vector<std::unique_ptr<shards_internal::ShardLink>> links_
      ABSL_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<ShardBatch>> asked_ ABSL_GUARDED_BY(mu_);
  uint64_t splits_ ABSL_GUARDED_BY(mu_) = 0;  // Numbers of draws of shares.
  int64_t batches_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<double> beta_ ABSL_GUARDED_BY(mu_);
  mutable absl::Mutex updates_mu_;
  std::vector<std::unique_ptr<RemoteSampler>> updates_;  // By shard.
  int64_t stale_rows_ ABSL_GUARDED_BY(updates_mu_) = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_SHARDS_SHARDED_SAMPLER_H_
