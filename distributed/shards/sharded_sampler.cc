// SPDX-License-Identifier: Apache-2.0
// Each shard has a stream of its own, whose replies come in the order of its
// requests. A batch is made of parts. Where a shard is lost, its parts are
// missing in the batches that were asked for, and the others are asked for them
// when the batch's turn comes.
#include "rill/distributed/shards/sharded_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/remote_sampler.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

using namespace replay_protocol;  // NOLINT: its names alone.

constexpr char kCreate[] = "ShardedSampler::Create";
constexpr char kSampleCall[] = "ShardedSampler::Sample";
constexpr size_t kMostShards = 1024;
constexpr int64_t kMostAhead = 64;
// A batch may ask a shard several times, where others are lost.
constexpr int64_t kWindow = 256;

}  // namespace

// The stream to one shard. Thread-safety: thread-compatible.
class ShardedSampler::Link {
 public:
  Link(const RemoteServer& server, const std::string& table)
      : table_(table),
        stream_(server, std::string(kSample), kWindow,
                [this](Connection& connection, absl::Time deadline) {
                  return Greet(connection, deadline);
                }) {}

  // Connects where it must; false where the shard is away or has no rows.
  bool TakesPart() {
    if (size_ == 0) stream_.Reset();  // It is greeted again: it may have rows.
    status_ = stream_.Open();
    return status_.ok() && size_ > 0;
  }
  bool Asks(const std::shared_ptr<Batch>& batch, int64_t rows);
  // The oldest part that was asked for, into its batch. DEADLINE_EXCEEDED at
  // `deadline`; after another error the shard is lost.
  absl::Status TakePart(size_t shard, absl::Time deadline);

  bool IsAskedBy(const Batch* batch) const {
    return std::any_of(asked_.begin(), asked_.end(), [&](const Part& part) {
      return part.batch.get() == batch;
    });
  }
  bool AwaitAttempt(absl::Time deadline) {
    return stream_.AwaitAttempt(deadline);
  }
  int64_t size() const { return size_; }
  std::optional<int64_t> server_number() const { return server_number_; }
  Shard stats() const {
    return {.size = size_,
            .rows = rows_,
            .connects = stream_.connects(),
            .status = status_};
  }

 private:
  struct Part {
    std::shared_ptr<Batch> batch;
    int64_t rows;
    absl::Time due;
  };

  Message Request() const {
    Message request{.values = SavedState(kRequest, kVersion)};
    request.values.Set(kTable, table_);
    return request;
  }
  absl::Status Greet(Connection& connection, absl::Time deadline);
  // Its parts are missing now.
  absl::Status Lose(absl::Status why);

  const std::string table_;
  RetryingStream stream_;
  std::deque<Part> asked_;  // In the order of their replies.
  std::optional<int64_t> server_number_;
  int64_t size_ = 0;
  int64_t rows_ = 0;
  absl::Status status_;
};

absl::Status ShardedSampler::Link::Greet(Connection& connection,
                                         absl::Time deadline) {
  RILL_ASSIGN_OR_RETURN(const Message reply,
                        connection.Call(kStats, Request(), deadline));
  RILL_ASSIGN_OR_RETURN(size_, reply.values.Get<int64_t>(kSize));
  RILL_ASSIGN_OR_RETURN(server_number_, reply.values.Get<int64_t>(kServer));
  return absl::OkStatus();
}

absl::Status ShardedSampler::Link::Lose(absl::Status why) {
  for (const Part& part : asked_) {
    part.batch->missing += part.rows;
    --part.batch->awaited;
  }
  asked_.clear();
  status_ = stream_.Drop(std::move(why));
  return status_;
}

bool ShardedSampler::Link::Asks(const std::shared_ptr<Batch>& batch,
                                int64_t rows) {
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

absl::Status ShardedSampler::Link::TakePart(size_t shard, absl::Time deadline) {
  const Part& oldest = asked_.front();
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
  const auto size = reply->message.values.Get<int64_t>(kSize);
  if (!size.ok()) return Lose(size.status());
  size_ = *size;
  rows_ += oldest.rows;
  oldest.batch->parts[shard].push_back(std::move(reply->message.batch));
  --oldest.batch->awaited;
  asked_.pop_front();
  stream_.Worked();
  return absl::OkStatus();
}

ShardedSampler::ShardedSampler(const Options& options) : options_(options) {}
ShardedSampler::~ShardedSampler() = default;

absl::StatusOr<std::unique_ptr<ShardedSampler>> ShardedSampler::Create(
    const Options& options) {
  if (options.shards.empty() || options.shards.size() > kMostShards) {
    return InvalidArgument(kCreate, ": shards: got ", options.shards.size(),
                           ", want [1, ", kMostShards, "]");
  }
  if (options.batch_size < 1) {
    return InvalidArgument(kCreate, ": batch_size: got ", options.batch_size,
                           ", want >= 1");
  }
  if (options.ahead < 0 || options.ahead > kMostAhead) {
    return InvalidArgument(kCreate, ": ahead: got ", options.ahead,
                           ", want [0, ", kMostAhead, "]");
  }
  auto sampler = std::unique_ptr<ShardedSampler>(new ShardedSampler(options));
  absl::MutexLock lock(&sampler->mu_);
  for (const RemoteServer& shard : options.shards) {
    RILL_RETURN_IF_ERROR(CheckRemoteServer(kCreate, shard));
    sampler->links_.push_back(std::make_unique<Link>(shard, options.table));
    RILL_ASSIGN_OR_RETURN(
        auto updates,
        RemoteSampler::Create({.server = shard, .table = options.table}));
    sampler->updates_.push_back(std::move(updates));
  }
  return sampler;
}

std::vector<int64_t> ShardedSampler::SharesOf(int64_t rows) {
  std::vector<double> sizes;
  double sum = 0;
  for (const auto& link : links_) {
    sizes.push_back(link->TakesPart() ? static_cast<double>(link->size()) : 0);
    sum += sizes.back();
  }
  std::vector<int64_t> shares(links_.size(), 0);
  if (sum == 0) return shares;
  // One offset for all bounds: each share is its mean rounded up or down.
  const double offset = Rng(options_.seed).UniformDouble(splits_++, 0);
  double below = 0;
  int64_t given = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    below += sizes[i];
    const bool is_last = below == sum;
    const auto bound =
        is_last ? rows
                : static_cast<int64_t>(std::floor(
                      below / sum * static_cast<double>(rows) + offset));
    shares[i] = std::clamp<int64_t>(bound, given, rows) - given;
    given += shares[i];
  }
  return shares;
}

absl::Status ShardedSampler::Ask(const std::shared_ptr<Batch>& batch) {
  while (batch->missing > 0) {
    const std::vector<int64_t> shares = SharesOf(batch->missing);
    bool has_asked = false;
    for (size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] > 0) has_asked |= links_[i]->Asks(batch, shares[i]);
    }
    if (has_asked) continue;
    std::string why;
    bool is_any_there = false;
    for (size_t i = 0; i < links_.size(); ++i) {
      const Shard shard = links_[i]->stats();
      is_any_there |= shard.status.ok();
      absl::StrAppend(
          &why, i == 0 ? "" : "; ", options_.shards[i].address, ": ",
          shard.status.ok() ? "has no rows" : shard.status.message());
    }
    if (is_any_there) return FailedPrecondition(kSampleCall, ": ", why);
    return Unavailable(kSampleCall, ": no shard answers: ", why);
  }
  return absl::OkStatus();
}

absl::Status ShardedSampler::TakePart(Batch* batch, absl::Time deadline) {
  for (size_t i = 0; i < links_.size(); ++i) {
    if (!links_[i]->IsAskedBy(batch)) continue;
    const absl::Status taken = links_[i]->TakePart(i, deadline);
    // Where the shard is lost, the others are asked.
    if (absl::IsDeadlineExceeded(taken) && links_[i]->IsAskedBy(batch)) {
      return taken;
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> ShardedSampler::TakeBatch(absl::Time deadline) {
  while (static_cast<int64_t>(asked_.size()) < options_.ahead + 1) {
    auto batch = std::make_shared<Batch>(Batch{.missing = options_.batch_size});
    RILL_RETURN_IF_ERROR(Ask(batch));
    asked_.push_back(std::move(batch));
  }
  const std::shared_ptr<Batch> oldest = asked_.front();
  while (oldest->awaited > 0 || oldest->missing > 0) {
    RILL_RETURN_IF_ERROR(Ask(oldest));
    RILL_RETURN_IF_ERROR(TakePart(oldest.get(), deadline));
  }
  asked_.pop_front();
  std::vector<TensorDict> parts;
  for (auto& [shard, of_shard] : oldest->parts) {
    for (TensorDict& part : of_shard) parts.push_back(std::move(part));
  }
  if (parts.size() == 1) return std::move(parts[0]);
  return Cat(parts);
}

absl::StatusOr<TensorDict> ShardedSampler::Sample() {
  absl::MutexLock lock(&mu_);
  const absl::Time deadline =
      Clock::System().Now() + options_.shards[0].timeout;
  for (;;) {
    absl::StatusOr<TensorDict> batch = TakeBatch(deadline);
    if (batch.ok()) ++batches_;
    if (!absl::IsUnavailable(batch.status()) ||
        !links_[0]->AwaitAttempt(deadline)) {
      return batch;
    }
  }
}

absl::Status ShardedSampler::UpdatePriorities(
    const TensorDict& sample, absl::Span<const float> priorities) {
  RILL_ASSIGN_OR_RETURN(const auto servers, sample.Flat<int64_t>(kServerKey));
  if (priorities.size() != servers.size() && priorities.size() != 1) {
    return InvalidArgument("ShardedSampler::UpdatePriorities: got ",
                           priorities.size(), " priorities, want ",
                           servers.size(), ", one a row, or 1");
  }
  std::vector<std::optional<int64_t>> numbers;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& link : links_) numbers.push_back(link->server_number());
  }
  absl::MutexLock lock(&updates_mu_);
  auto left = static_cast<int64_t>(servers.size());
  for (size_t shard = 0; shard < numbers.size(); ++shard) {
    std::vector<int64_t> rows;
    std::vector<float> values;
    for (size_t i = 0; i < servers.size(); ++i) {
      if (servers[i] != numbers[shard]) continue;
      rows.push_back(static_cast<int64_t>(i));
      values.push_back(priorities[priorities.size() == 1 ? 0 : i]);
    }
    if (rows.empty()) continue;
    left -= static_cast<int64_t>(rows.size());
    RILL_ASSIGN_OR_RETURN(
        const TensorDict origins,
        sample.Select({"index", "index_generation", kServerKey}));
    RILL_ASSIGN_OR_RETURN(const TensorDict part, origins.Gather(rows));
    RILL_RETURN_IF_ERROR(updates_[shard]->UpdatePriorities(part, values));
  }
  stale_rows_ += left;
  return absl::OkStatus();
}

absl::Status ShardedSampler::Flush() {
  absl::MutexLock lock(&updates_mu_);
  for (const auto& updates : updates_) RILL_RETURN_IF_ERROR(updates->Flush());
  return absl::OkStatus();
}

ShardedSampler::Stats ShardedSampler::GetStats() const {
  Stats stats;
  {
    absl::MutexLock lock(&mu_);
    stats.batches = batches_;
    for (const auto& link : links_) stats.shards.push_back(link->stats());
  }
  absl::MutexLock lock(&updates_mu_);
  stats.stale_rows = stale_rows_;
  for (const auto& updates : updates_) {
    stats.stale_rows += updates->GetStats().stale_rows;
  }
  return stats;
}

}  // namespace rill
