// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/shards/shard_link.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/distributed/shards/shard_weights.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill::shards_internal {
namespace {

using namespace replay_protocol;  // NOLINT: its names alone.

// A batch may ask a shard several times, where others are lost.
constexpr int64_t kWindow = 256;
// Batches in a row for which a shard is not asked, before it is asked for its
// priorities.
constexpr int64_t kMostUnasked = 64;

}  // namespace

ShardLink::ShardLink(const RemoteServer& server, std::string table,
                     bool by_mass)
    : table_(std::move(table)),
      by_mass_(by_mass),
      stream_(server, std::string(kSample), kWindow,
              [this](Connection& connection, absl::Time deadline) {
                return Greet(connection, deadline);
              }) {}

double ShardLink::Share() {
  const bool is_old = by_mass_ && unasked_++ >= kMostUnasked;
  // It is greeted again, and says what it has now.
  if (asked_.empty() && (share_ == 0 || is_old)) stream_.Reset();
  status_ = stream_.Open();
  return TakesPart() ? share_ : 0;
}

Message ShardLink::Request() const {
  Message request{.values = SavedState(kRequest, kVersion)};
  request.values.Set(kTable, table_);
  return request;
}

absl::Status ShardLink::Greet(Connection& connection, absl::Time deadline) {
  RILL_ASSIGN_OR_RETURN(const Message reply,
                        connection.Call(kStats, Request(), deadline));
  RILL_ASSIGN_OR_RETURN(server_number_, reply.values.Get<int64_t>(kServer));
  return TakeReport(reply.values);
}

absl::Status ShardLink::TakeReport(const SavedState& values) {
  RILL_ASSIGN_OR_RETURN(size_, values.Get<int64_t>(kSize));
  share_ = static_cast<double>(size_);
  if (by_mass_) {
    RILL_ASSIGN_OR_RETURN(mass_, MassOf(values));
    share_ = mass_.sum;
  }
  unasked_ = 0;
  return absl::OkStatus();
}

absl::Status ShardLink::Lose(absl::Status why) {
  for (const AskedPart& part : asked_) {
    part.batch->missing += part.rows;
    --part.batch->awaited;
  }
  asked_.clear();
  status_ = stream_.Drop(std::move(why));
  return status_;
}

bool ShardLink::Asks(const std::shared_ptr<ShardBatch>& batch, int64_t rows) {
  Message request = Request();
  request.values.Set(kBatchSize, rows);
  const absl::Duration timeout = stream_.server().reply_timeout;
  const absl::Time now = Clock::System().Now();
  if (const absl::Status sent = stream_.stream()->Send(request, now + timeout);
      !sent.ok()) {
    Lose(sent).IgnoreError();
    return false;
  }
  asked_.push_back({batch, rows, now + 2 * timeout});
  batch->missing -= rows;
  ++batch->awaited;
  return true;
}

absl::Status ShardLink::TakePart(size_t shard, absl::Time deadline) {
  const AskedPart& oldest = asked_.front();
  absl::StatusOr<Reply> reply =
      stream_.stream()->Receive(std::min(deadline, oldest.due));
  if (absl::IsDeadlineExceeded(reply.status()) && deadline < oldest.due) {
    return reply.status();
  }
  if (!reply.ok()) return Lose(reply.status());
  if (!reply->status.ok()) {
    // A table that lost its rows gives none until it is asked for its size.
    return Lose(reply->status);
  }
  if (absl::Status taken = TakeReport(reply->message.values); !taken.ok()) {
    return Lose(std::move(taken));
  }
  rows_ += oldest.rows;
  oldest.batch->parts[shard].push_back(
      {.rows = std::move(reply->message.batch), .mass = mass_});
  --oldest.batch->awaited;
  asked_.pop_front();
  stream_.Worked();
  return absl::OkStatus();
}

}  // namespace rill::shards_internal
