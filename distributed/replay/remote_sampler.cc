// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/remote_sampler.h"

#include <algorithm>
#include <cstdint>
#include <memory>
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
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/distributed/replay/sent_batches.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/final_error.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using namespace replay_protocol;  // NOLINT: its names alone.

constexpr int64_t kMostAhead = 64;
// Batches that come in one message have so many at most. Larger ones cost
// little beside their bytes.
constexpr int64_t kMessageBytes = 256 << 10;

absl::Status NoGreeting(Connection&, absl::Time) { return absl::OkStatus(); }

}  // namespace

RemoteSampler::RemoteSampler(const Options& options)
    : options_(options),
      samples_(options.server, std::string(kSample), options.ahead + 1,
               NoGreeting),
      updates_(options.server, std::string(kUpdate), options.max_updates,
               NoGreeting, [this](const Message&, const Reply& reply, bool) {
                 updates_mu_.AssertHeld();
                 return TakeUpdateReply(reply);
               }) {}

absl::StatusOr<std::unique_ptr<RemoteSampler>> RemoteSampler::Create(
    const Options& options) {
  constexpr char kCreate[] = "RemoteSampler::Create";
  RILL_RETURN_IF_ERROR(CheckRemoteServer(kCreate, options.server));
  if (options.batch_size < 0) {
    return InvalidArgument(kCreate, ": batch_size: got ", options.batch_size,
                           ", want >= 0");
  }
  if (options.ahead < 0 || options.ahead > kMostAhead) {
    return InvalidArgument(kCreate, ": ahead: got ", options.ahead,
                           ", want [0, ", kMostAhead, "]");
  }
  if (options.max_updates < 1 || options.max_updates > kMostAhead) {
    return InvalidArgument(kCreate, ": max_updates: got ", options.max_updates,
                           ", want [1, ", kMostAhead, "]");
  }
  return std::unique_ptr<RemoteSampler>(new RemoteSampler(options));
}

absl::StatusOr<TensorDict> RemoteSampler::Sample() {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  absl::MutexLock lock(&samples_mu_);
  absl::StatusOr<TensorDict> batch = samples_.Persist(
      absl::StrCat("RemoteSampler::Sample: table \"", options_.table, "\""),
      deadline, [&] {
        samples_mu_.AssertHeld();
        return TakeBatch(deadline);
      });
  if (batch.ok()) ++batches_;
  return batch;
}

absl::StatusOr<TensorDict> RemoteSampler::TakeBatch(absl::Time deadline) {
  const absl::Status asked = Ask();
  if (here_.empty()) {
    RILL_RETURN_IF_ERROR(asked);
    RILL_RETURN_IF_ERROR(TakeReply(deadline));
  }
  TensorDict batch = std::move(here_.front());
  here_.pop_front();
  return batch;
}

int64_t RemoteSampler::GroupSize() const {
  if (bytes_ == 0) return 1;
  // Two messages, so that one is on its way while the other is used. Where two
  // batches are ahead they come in one, which is asked for when one is left.
  const int64_t wanted = options_.ahead == 2 ? 2 : (options_.ahead + 1) / 2;
  return std::max<int64_t>(1, std::min(wanted, kMessageBytes / bytes_));
}

absl::Status RemoteSampler::Ask() {
  RILL_RETURN_IF_ERROR(samples_.Open());
  const absl::Duration timeout = options_.server.reply_timeout;
  const int64_t group = GroupSize();
  auto batches = static_cast<int64_t>(here_.size());
  for (const Asked& asked : asked_) batches += asked.batches;
  for (; batches + group <= options_.ahead + 1; batches += group) {
    Message request{.values = SavedState(kRequest, kVersion)};
    request.values.Set(kTable, options_.table);
    request.values.Set(kBatchSize, options_.batch_size);
    if (group > 1) request.values.Set(kCount, group);
    const absl::Time now = Clock::System().Now();
    if (absl::Status sent = samples_.stream()->Send(request, now + timeout);
        !sent.ok()) {
      return Drop(std::move(sent));
    }
    asked_.push_back({.due = now + 2 * timeout, .batches = group});
  }
  return absl::OkStatus();
}

absl::Status RemoteSampler::TakeReply(absl::Time deadline) {
  const absl::Time due = asked_.front().due;
  const absl::StatusOr<Reply> reply =
      samples_.stream()->Receive(std::min(deadline, due));
  if (absl::IsDeadlineExceeded(reply.status()) && deadline < due) {
    return reply.status();
  }
  if (!reply.ok()) return Drop(reply.status());
  if (IsFinalError(reply->status)) {
    // Those that were asked for behind it would only repeat the error.
    asked_.clear();
    samples_.Reset();
    return reply->status;
  }
  if (!reply->status.ok()) return Drop(reply->status);
  asked_.pop_front();
  samples_.Worked();
  return Split(reply->message);
}

absl::Status RemoteSampler::Split(const Message& reply) {
  const absl::StatusOr<absl::Span<const int64_t>> batch_rows =
      reply.values.Ints(kBatchRows);
  if (!batch_rows.ok()) {
    here_.push_back(reply.batch);
  } else {
    int64_t begin = 0;
    for (const int64_t rows : *batch_rows) {
      RILL_ASSIGN_OR_RETURN(TensorDict batch,
                            reply.batch.Slice(0, begin, begin + rows));
      here_.push_back(std::move(batch));
      begin += rows;
    }
    if (here_.empty()) {
      return absl::DataLossError(absl::StrCat(
          "RemoteSampler::Sample: ", kBatchRows, ": got none, want a batch"));
    }
  }
  bytes_ = HasOnlyTensors(here_.back()) ? here_.back().size_bytes() : 0;
  return absl::OkStatus();
}

absl::Status RemoteSampler::Drop(absl::Status why) {
  asked_.clear();
  return samples_.Drop(std::move(why));
}

absl::Status RemoteSampler::UpdatePriorities(
    const TensorDict& sample, absl::Span<const float> priorities) {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  Message request{.values = SavedState(kRequest, kVersion)};
  request.values.Set(kTable, options_.table);
  RILL_ASSIGN_OR_RETURN(const Tensor index, sample.Get("index"));
  RILL_ASSIGN_OR_RETURN(request.batch,
                        sample.Select({"index", "index_generation", kServerKey,
                                       "sequence_id", "anchor_index"},
                                      /*strict=*/false));
  if (static_cast<int64_t>(priorities.size()) == index.num_elements()) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, Tensor::From(priorities, index.shape()));
    RILL_RETURN_IF_ERROR(request.batch.Set(kPriorityKey, std::move(leaf)));
  } else {
    request.values.Set(
        kPriorities, std::vector<double>(priorities.begin(), priorities.end()));
  }
  absl::MutexLock lock(&updates_mu_);
  RILL_RETURN_IF_ERROR(updates_.AwaitRoom(deadline));
  updates_.Add(std::move(request));
  return absl::OkStatus();
}

absl::Status RemoteSampler::Flush() {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  absl::MutexLock lock(&updates_mu_);
  return updates_.AwaitReplies(deadline);
}

RemoteSampler::Stats RemoteSampler::GetStats() const {
  Stats stats;
  {
    absl::MutexLock lock(&samples_mu_);
    stats.batches = batches_;
    stats.connects = samples_.connects();
  }
  absl::MutexLock lock(&updates_mu_);
  stats.stale_rows = stale_rows_;
  return stats;
}

absl::Status RemoteSampler::TakeUpdateReply(const Reply& reply) {
  if (!reply.status.ok()) {
    return absl::Status(
        reply.status.code(),
        absl::StrCat("RemoteSampler::UpdatePriorities: table \"",
                     options_.table, "\" at \"", options_.server.address,
                     "\": ", reply.status.message()));
  }
  const auto stale = reply.message.values.Get<int64_t>(kStale);
  if (stale.ok()) stale_rows_ += *stale;
  return absl::OkStatus();
}

}  // namespace rill
