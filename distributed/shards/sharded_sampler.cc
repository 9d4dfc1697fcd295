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
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/remote_sampler.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/distributed/shards/shard_link.h"
#include "rill/distributed/shards/shard_weights.h"
#include "rill/distributed/transport/final_error.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

using namespace replay_protocol;  // NOLINT: its names alone.
using shards_internal::Reweigh;
using shards_internal::ShardBatch;
using shards_internal::ShardLink;
using shards_internal::ShardPart;

constexpr char kCreate[] = "ShardedSampler::Create";
constexpr char kSampleCall[] = "ShardedSampler::Sample";
constexpr size_t kMostShards = 1024;
constexpr int64_t kMostAhead = 64;

absl::Status CheckBeta(absl::string_view caller, ShardShares shares,
                       double beta) {
  if (shares != ShardShares::kPriorityMass) {
    return InvalidArgument(caller, ": beta: got ", beta,
                           ", want none with shares other than kPriorityMass");
  }
  if (std::isfinite(beta) && beta >= 0) return absl::OkStatus();
  return InvalidArgument(caller, ": beta: got ", beta,
                         ", want a finite value >= 0");
}

}  // namespace

ShardedSampler::ShardedSampler(const Options& options)
    : options_(options), beta_(options.beta) {}
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
  if (options.beta.has_value()) {
    RILL_RETURN_IF_ERROR(CheckBeta(kCreate, options.shares, *options.beta));
  }
  auto sampler = std::unique_ptr<ShardedSampler>(new ShardedSampler(options));
  absl::MutexLock lock(&sampler->mu_);
  for (const RemoteServer& shard : options.shards) {
    RILL_RETURN_IF_ERROR(CheckRemoteServer(kCreate, shard));
    sampler->links_.push_back(std::make_unique<ShardLink>(
        shard, options.table, options.shares == ShardShares::kPriorityMass));
    RILL_ASSIGN_OR_RETURN(
        auto updates,
        RemoteSampler::Create({.server = shard, .table = options.table}));
    sampler->updates_.push_back(std::move(updates));
  }
  return sampler;
}

std::vector<int64_t> ShardedSampler::SharesOf(int64_t rows) {
  std::vector<double> masses;
  double sum = 0;
  for (const auto& link : links_) {
    masses.push_back(link->Share());
    sum += masses.back();
  }
  std::vector<int64_t> shares(links_.size(), 0);
  if (sum == 0) return shares;
  // One offset for all bounds: each share is its mean rounded up or down.
  const double offset = Rng(options_.seed).UniformDouble(splits_++, 0);
  double below = 0;
  int64_t given = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    below += masses[i];
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

absl::Status ShardedSampler::Ask(const std::shared_ptr<ShardBatch>& batch) {
  while (batch->missing > 0) {
    const std::vector<int64_t> shares = SharesOf(batch->missing);
    bool has_asked = false;
    for (size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] > 0) has_asked |= links_[i]->Asks(batch, shares[i]);
    }
    if (has_asked) continue;
    std::string why;
    bool is_answered = false;
    for (size_t i = 0; i < links_.size(); ++i) {
      const absl::Status& status = links_[i]->status();
      is_answered |= status.ok() || IsFinalError(status);
      absl::StrAppend(&why, i == 0 ? "" : "; ", options_.shards[i].address,
                      ": ",
                      status.ok() ? "has no rows to draw" : status.message());
    }
    if (is_answered) return FailedPrecondition(kSampleCall, ": ", why);
    return Unavailable(kSampleCall, ": no shard answers: ", why);
  }
  return absl::OkStatus();
}

absl::Status ShardedSampler::TakePart(ShardBatch* batch, absl::Time deadline) {
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

absl::Status ShardedSampler::ReweighAll(ShardBatch* batch) const {
  double min = std::numeric_limits<double>::infinity();
  for (const auto& link : links_) {
    if (link->TakesPart() && link->mass().min > 0) {
      min = std::min(min, link->mass().min);
    }
  }
  for (const auto& [shard, parts] : batch->parts) {
    for (const ShardPart& part : parts) {
      if (part.mass.min > 0) min = std::min(min, part.mass.min);
    }
  }
  for (auto& [shard, parts] : batch->parts) {
    for (ShardPart& part : parts) {
      RILL_RETURN_IF_ERROR(Reweigh(min, beta_, &part))
          << "at \"" << options_.shards[shard].address << "\"";
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> ShardedSampler::TakeBatch(absl::Time deadline) {
  while (static_cast<int64_t>(asked_.size()) < options_.ahead + 1) {
    auto batch = std::make_shared<ShardBatch>(
        ShardBatch{.missing = options_.batch_size});
    RILL_RETURN_IF_ERROR(Ask(batch));
    asked_.push_back(std::move(batch));
  }
  const std::shared_ptr<ShardBatch> oldest = asked_.front();
  while (oldest->awaited > 0 || oldest->missing > 0) {
    RILL_RETURN_IF_ERROR(Ask(oldest));
    RILL_RETURN_IF_ERROR(TakePart(oldest.get(), deadline));
  }
  asked_.pop_front();
  if (options_.shares == ShardShares::kPriorityMass) {
    RILL_RETURN_IF_ERROR(ReweighAll(oldest.get()));
  }
  std::vector<TensorDict> parts;
  for (auto& [shard, of_shard] : oldest->parts) {
    for (ShardPart& part : of_shard) parts.push_back(std::move(part.rows));
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

absl::Status ShardedSampler::SetBeta(double beta) {
  RILL_RETURN_IF_ERROR(
      CheckBeta("ShardedSampler::SetBeta", options_.shares, beta));
  absl::MutexLock lock(&mu_);
  beta_ = beta;
  return absl::OkStatus();
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
    for (const auto& link : links_) {
      stats.shards.push_back({.size = link->size(),
                              .priority_sum = link->mass().sum,
                              .rows = link->rows(),
                              .connects = link->connects(),
                              .status = link->status()});
    }
  }
  absl::MutexLock lock(&updates_mu_);
  stats.stale_rows = stale_rows_;
  for (const auto& updates : updates_) {
    stats.stale_rows += updates->GetStats().stale_rows;
  }
  return stats;
}

}  // namespace rill
