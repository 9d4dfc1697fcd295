// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_REMOTE_SINK_H_
#define RILL_DISTRIBUTED_REPLAY_REMOTE_SINK_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/client/resent_calls.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// A table of a ReplayService as a Sink: a collector does not know where its
// rows go.
//
// Writes and cuts are numbered and sent ahead; each is carried out exactly
// once, over any number of connections. Write returns when its batch is on the
// way. Where `max_unacknowledged` are, it waits first. The first batch is
// waited for, so that leaves that the table does not take are refused at once;
// later batches have to have the same leaves.
//
// Errors:
// - A server that is away, full, or held by its rate limiter: the call tries
//   again until RemoteServer::timeout. Then its error comes back, nothing of
//   the call has happened, and what was sent before is kept and tried again by
//   the next call.
// - A batch that the table refuses for good comes back as the error of a later
//   call, once, and that call has done nothing.
// - A server that comes back from a checkpoint has lost what came after it:
//   Stats::lost_rows, and a warning in the log. Nothing else is lost, and
//   nothing is there twice.
// - Writes that are not acknowledged when this is destroyed may be lost: Flush.
//
// Thread-safety: thread-safe; calls come one at a time.
// Cost: Write copies the batch once, but one from Reserve not at all. Memory of
//   batches that have a reply is kept for the next ones, of
//   `max_unacknowledged` at most. Large ones of one shape are made some at a
//   time (distributed/replay/batch_memory.h), and their block of 4 to 8 MiB
//   goes with the last of them.
//
// Example (RemoteSinkTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto sink, RemoteSink::Create({.server = {.transport = transport,
//                                                 .address = address}}));
//   RILL_RETURN_IF_ERROR(collector->CollectInto(*sink));
//   RILL_RETURN_IF_ERROR(sink->Flush());
class RemoteSink final : public Sink {
 public:
  struct Options {
    RemoteServer server = {};
    std::string table = "replay";
    int64_t max_unacknowledged = 16;  // Writes and cuts; [1, 64].
  };
  struct Stats {
    int64_t acknowledged_rows = 0;
    // Those of them that are gone with a server that came back without them.
    int64_t lost_rows = 0;
    int64_t unacknowledged = 0;  // Writes and cuts.
    int64_t connects = 0;
  };

  // INVALID_ARGUMENT names the option. Connects; errors as Write's.
  static absl::StatusOr<std::unique_ptr<RemoteSink>> Create(
      const Options& options);

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override;
  absl::Status Cut(int64_t producer, LaneRange lanes) override;
  // UNIMPLEMENTED before the first batch is acknowledged, and where that has
  // entries that are no tensors.
  absl::StatusOr<TensorDict> Reserve(const Shape& shape) override;
  // All is acknowledged, and the server's buffer flushed.
  absl::Status Flush() override;

  Stats GetStats() const;

 private:
  RemoteSink(const Options& options, std::string client);

  absl::Status Greet(Connection& connection, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Rows that stay as they are until the reply: the lent ones, or a copy.
  absl::StatusOr<TensorDict> OwnRows(const TensorDict& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A batch of the layout with any values.
  absl::StatusOr<TensorDict> TakeMemory(const Shape& shape)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveBack(const TensorDict& memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TrimSpares() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Queues it under the next number, once there is room.
  absl::Status Add(int64_t kind, const WriteInfo& info, int64_t lanes,
                   TensorDict batch, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The error of an operation that was refused for good.
  absl::Status TakeReply(const Message& request, const Reply& reply,
                         bool was_sent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const std::string client_;
  mutable absl::Mutex mu_;
  ResentCalls calls_ ABSL_GUARDED_BY(mu_);
  int64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  int64_t newest_ ABSL_GUARDED_BY(mu_) = 0;  // That has a reply.
  int64_t acknowledged_rows_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t lost_rows_ ABSL_GUARDED_BY(mu_) = 0;
  // That of the first batch that was acknowledged.
  std::optional<TensorDictSpec> layout_ ABSL_GUARDED_BY(mu_);
  bool has_only_tensors_ ABSL_GUARDED_BY(mu_) = false;  // The layout.
  // By Reserve. Memory whose loan ends is no spare: a collector may still write
  // there, and a batch that is copied may lie in it.
  std::optional<TensorDict> lent_ ABSL_GUARDED_BY(mu_);
  std::deque<TensorDict> spares_ ABSL_GUARDED_BY(mu_);
  Shape newest_shape_ ABSL_GUARDED_BY(mu_);  // That memory was taken for.
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_REMOTE_SINK_H_
