// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/remote_sink.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/rng_entropy.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/distributed/client/resent_calls.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/batch_memory.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/distributed/replay/sent_batches.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using namespace replay_protocol;  // NOLINT: its names alone.

constexpr int64_t kMostUnacknowledged = 64;

}  // namespace

RemoteSink::RemoteSink(const Options& options, std::string client)
    : options_(options),
      client_(std::move(client)),
      calls_(
          options.server, std::string(kOperation), options.max_unacknowledged,
          [this](Connection& connection, absl::Time deadline) {
            mu_.AssertHeld();
            return Greet(connection, deadline);
          },
          [this](const Message& request, const Reply& reply, bool was_sent) {
            mu_.AssertHeld();
            return TakeReply(request, reply, was_sent);
          }) {}

absl::StatusOr<std::unique_ptr<RemoteSink>> RemoteSink::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckRemoteServer("RemoteSink::Create", options.server));
  if (options.max_unacknowledged < 1 ||
      options.max_unacknowledged > kMostUnacknowledged) {
    return InvalidArgument("RemoteSink::Create: max_unacknowledged: got ",
                           options.max_unacknowledged, ", want [1, ",
                           kMostUnacknowledged, "]");
  }
  RILL_ASSIGN_OR_RETURN(const auto name, RandomName());
  auto sink = std::unique_ptr<RemoteSink>(new RemoteSink(
      options, absl::BytesToHexString(
                   {reinterpret_cast<const char*>(name.data()), name.size()})));
  RILL_RETURN_IF_ERROR(sink->Flush());
  return sink;
}

absl::Status RemoteSink::Greet(Connection& connection, absl::Time deadline) {
  Message hello{.values = SavedState(kRequest, kVersion)};
  hello.values.Set(kTable, options_.table);
  hello.values.Set(kClient, client_);
  hello.values.Set(kNewest, newest_);
  hello.values.Set(kRows, acknowledged_rows_);
  RILL_ASSIGN_OR_RETURN(const Message reply,
                        connection.Call(kHello, hello, deadline));
  RILL_RETURN_IF_ERROR(reply.values.CheckType(kReply, kVersion));
  RILL_ASSIGN_OR_RETURN(const auto lost, reply.values.Get<int64_t>(kLost));
  LOG_IF(WARNING, lost > lost_rows_)
      << "the replay server at \"" << options_.server.address
      << "\" came back without " << lost - lost_rows_ << " rows of this client";
  lost_rows_ = lost;
  return absl::OkStatus();
}

absl::Status RemoteSink::Write(const TensorDict& batch, const WriteInfo& info) {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  absl::MutexLock lock(&mu_);
  if (layout_.has_value()) {
    RILL_RETURN_IF_ERROR(layout_->CheckLayout("RemoteSink::Write", batch));
  } else {
    RILL_RETURN_IF_ERROR(calls_.AwaitReplies(deadline));
  }
  RILL_RETURN_IF_ERROR(calls_.AwaitRoom(deadline));
  RILL_ASSIGN_OR_RETURN(TensorDict rows, OwnRows(batch));
  RILL_RETURN_IF_ERROR(
      Add(kWrite, info, /*lanes=*/0, std::move(rows), deadline));
  if (layout_.has_value()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(calls_.AwaitReplies(deadline));
  layout_ = TensorDictSpec::Of(batch);
  newest_shape_ = batch.batch_shape();
  has_only_tensors_ = HasOnlyTensors(batch);
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> RemoteSink::OwnRows(const TensorDict& batch) {
  if (lent_.has_value() && AreSameBytes(*lent_, batch)) {
    lent_.reset();
    return batch;
  }
  lent_.reset();
  RILL_ASSIGN_OR_RETURN(TensorDict rows, batch.To(Device::Cpu()));
  if (!has_only_tensors_ || !HasOnlyTensors(rows)) return rows.Clone();
  RILL_ASSIGN_OR_RETURN(TensorDict memory, TakeMemory(rows.batch_shape()));
  RILL_RETURN_IF_ERROR(memory.CopyFrom(rows));
  // Names of dimensions stay those of this batch.
  rows.Unlock();
  RILL_RETURN_IF_ERROR(rows.Update(memory));
  return rows;
}

absl::StatusOr<TensorDict> RemoteSink::TakeMemory(const Shape& shape) {
  // The newest is the one that caches still have.
  const auto found = std::find_if(
      spares_.rbegin(), spares_.rend(),
      [&](const TensorDict& one) { return one.batch_shape() == shape; });
  const bool is_repeated = std::exchange(newest_shape_, shape) == shape;
  if (found == spares_.rend()) {
    // Blocks for shapes that come once would be many.
    if (!is_repeated) return layout_->Empty(shape, {});
    RILL_ASSIGN_OR_RETURN(auto made, MakeBatchMemory(*layout_, shape));
    TensorDict memory = std::move(made.back());
    made.pop_back();
    std::move(made.begin(), made.end(), std::back_inserter(spares_));
    TrimSpares();
    return memory;
  }
  TensorDict memory = std::move(*found);
  spares_.erase(std::next(found).base());
  return memory;
}

void RemoteSink::GiveBack(const TensorDict& memory) {
  if (!has_only_tensors_ || !HasOnlyTensors(memory)) return;
  spares_.push_back(memory);
  TrimSpares();
}

void RemoteSink::TrimSpares() {
  // Shapes that came once give way.
  while (static_cast<int64_t>(spares_.size()) > options_.max_unacknowledged) {
    spares_.pop_front();
  }
}

absl::StatusOr<TensorDict> RemoteSink::Reserve(const Shape& shape) {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  absl::MutexLock lock(&mu_);
  lent_.reset();
  if (!has_only_tensors_) {
    return absl::UnimplementedError(
        "RemoteSink::Reserve: no batch of tensors alone was acknowledged yet");
  }
  // Else a collector would go on ahead of a server that is slower.
  RILL_RETURN_IF_ERROR(calls_.AwaitRoom(deadline));
  RILL_ASSIGN_OR_RETURN(lent_, TakeMemory(shape));
  return *lent_;
}

absl::Status RemoteSink::Cut(int64_t producer, LaneRange lanes) {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  absl::MutexLock lock(&mu_);
  lent_.reset();
  return Add(kCut, {.producer = producer, .first_lane = lanes.first},
             lanes.count, {}, deadline);
}

absl::Status RemoteSink::Flush() {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  absl::MutexLock lock(&mu_);
  RILL_RETURN_IF_ERROR(Add(kFlush, {}, /*lanes=*/0, {}, deadline));
  return calls_.AwaitReplies(deadline);
}

RemoteSink::Stats RemoteSink::GetStats() const {
  absl::MutexLock lock(&mu_);
  return {.acknowledged_rows = acknowledged_rows_,
          .lost_rows = lost_rows_,
          .unacknowledged = calls_.size(),
          .connects = calls_.connects()};
}

absl::Status RemoteSink::Add(int64_t kind, const WriteInfo& info, int64_t lanes,
                             TensorDict batch, absl::Time deadline) {
  RILL_RETURN_IF_ERROR(calls_.AwaitRoom(deadline));
  Message message{.values = SavedState(kRequest, kVersion),
                  .batch = std::move(batch)};
  message.values.Set(kTable, options_.table);
  message.values.Set(kClient, client_);
  message.values.Set(kNumber, next_number_++);
  message.values.Set(kKind, kind);
  message.values.Set(kProducer, info.producer);
  message.values.Set(kFirstLane, info.first_lane);
  message.values.Set(kLanes, lanes);
  message.values.Set(kPolicyVersion, info.policy_version);
  message.values.Set(kSequence, info.sequence);
  message.values.Set(kSource, static_cast<int64_t>(info.source));
  calls_.Add(std::move(message));
  return absl::OkStatus();
}

absl::Status RemoteSink::TakeReply(const Message& request, const Reply& reply,
                                   bool was_sent) {
  const auto number = request.values.Get<int64_t>(kNumber);
  const auto kind = request.values.Get<int64_t>(kKind);
  GiveBack(request.batch);
  if (was_sent) {
    newest_ = *number;
  } else {
    next_number_ = *number;  // It was the newest, and the first of its leaves.
  }
  if (!reply.status.ok()) {
    return absl::Status(
        reply.status.code(),
        absl::StrCat("RemoteSink: table \"", options_.table, "\" at \"",
                     options_.server.address, "\" refused operation ", *number,
                     ": ", reply.status.message()));
  }
  if (*kind == kWrite) {
    acknowledged_rows_ += request.batch.batch_shape().num_elements();
  }
  return absl::OkStatus();
}

}  // namespace rill
