// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_SHARDS_SHARD_LINK_H_
#define RILL_DISTRIBUTED_SHARDS_SHARD_LINK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/base/state/saved_state.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/shards/shard_weights.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/samplers/prioritized/priority_mass.h"

namespace rill::shards_internal {

// A batch that was asked for.
struct ShardBatch {
  std::map<size_t, std::vector<ShardPart>> parts = {};  // By shard.
  int64_t missing = 0;  // Rows that are neither here nor on their way.
  int64_t awaited = 0;  // Parts that are on their way.
};

// The stream to one shard.
// Thread-safety: thread-compatible.
// Cost: Asks is a message, TakePart that of its reply; Share and TakePart wait.
class ShardLink {
 public:
  ShardLink(const RemoteServer& server, std::string table, bool by_mass);

  // The number by which its share of a batch goes; connects where it must. 0
  // where the shard is away or has nothing to draw.
  double Share();
  bool TakesPart() const { return status_.ok() && share_ > 0; }
  // Asks for rows of `batch`; false where that is not possible.
  bool Asks(const std::shared_ptr<ShardBatch>& batch, int64_t rows);
  // The oldest part that was asked for, into its batch. DEADLINE_EXCEEDED at
  // `deadline`; after another error the shard is lost.
  absl::Status TakePart(size_t shard, absl::Time deadline);

  bool IsAskedBy(const ShardBatch* batch) const {
    return std::any_of(
        asked_.begin(), asked_.end(),
        [&](const AskedPart& part) { return part.batch.get() == batch; });
  }
  bool AwaitAttempt(absl::Time deadline) {
    return stream_.AwaitAttempt(deadline);
  }
  std::optional<int64_t> server_number() const { return server_number_; }
  // As the shard said last.
  int64_t size() const { return size_; }
  const PriorityMass& mass() const { return mass_; }
  int64_t rows() const { return rows_; }  // That it gave.
  int64_t connects() const { return stream_.connects(); }
  const absl::Status& status() const { return status_; }

 private:
  struct AskedPart {
    std::shared_ptr<ShardBatch> batch;
    int64_t rows;
    absl::Time due;
  };

  Message Request() const;
  absl::Status Greet(Connection& connection, absl::Time deadline);
  // Takes what a reply says of the table.
  absl::Status TakeReport(const SavedState& values);
  // Its parts are missing now.
  absl::Status Lose(absl::Status why);

  const std::string table_;
  const bool by_mass_;
  RetryingStream stream_;
  std::deque<AskedPart> asked_;  // In the order of their replies.
  std::optional<int64_t> server_number_;
  int64_t size_ = 0;
  PriorityMass mass_;
  double share_ = 0;
  int64_t unasked_ = 0;  // Shares that were given since the last report.
  int64_t rows_ = 0;
  absl::Status status_;
};

}  // namespace rill::shards_internal

#endif  // RILL_DISTRIBUTED_SHARDS_SHARD_LINK_H_
