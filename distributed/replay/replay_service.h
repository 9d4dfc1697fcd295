// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_REPLAY_SERVICE_H_
#define RILL_DISTRIBUTED_REPLAY_REPLAY_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rill/distributed/replay/client_log.h"
#include "rill/distributed/replay/sent_batches.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Replay buffers for other programs, as tables by name: Reverb's users know it
// as a server. RemoteSink writes to a table, RemoteSampler samples it.
//
// Each operation of a client is carried out exactly once, though connections
// end and requests are repeated, lost or late. The numbers of operations are
// saved with the rows: a server that is opened from a checkpoint knows which it
// has, and its clients know what it lost.
//
// Thread-safety: thread-safe.
// Cost: that of the buffer's call.
//
// Example (ReplayServiceTest.Example runs it):
//   std::map<std::string, std::unique_ptr<ReplayBuffer>> tables;
//   tables["replay"] = std::move(buffer);
//   RILL_ASSIGN_OR_RETURN(auto service,
//                         ReplayService::Create(std::move(tables)));
//   RILL_ASSIGN_OR_RETURN(auto server, transport->Listen("", service));
//   RILL_RETURN_IF_ERROR(service->Save(directory));
class ReplayService final : public Service {
 public:
  using Tables = std::map<std::string, std::unique_ptr<ReplayBuffer>>;
  using TableOptions = std::map<std::string, ReplayBuffer::Options>;

  // Samples of the tables lie on the host. A table with a rate limiter has a
  // rate_limit_timeout below that of its clients' calls (RemoteSink::Options).
  // INVALID_ARGUMENT where there is no table, or one is null.
  static absl::StatusOr<std::shared_ptr<ReplayService>> Create(Tables tables);

  // Tables and what was carried out, as one RunCheckpoint, with its errors.
  // Writes wait meanwhile.
  absl::Status Save(const std::string& directory) const;
  // A service with what Save wrote, and tables of these options; errors as
  // RunCheckpoint::Open.
  static absl::StatusOr<std::shared_ptr<ReplayService>> Open(
      const std::string& directory, TableOptions tables);

  // Methods: replay_protocol.h. NOT_FOUND lists the tables.
  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override;

  // For local users beside the remote ones; null where there is none. It lives
  // as long as this.
  ReplayBuffer* table(absl::string_view name) const;
  const Tables& tables() const { return tables_; }
  // A number that no other start of a server has.
  int64_t server_number() const { return server_number_; }

 private:
  // A request that was looked at.
  struct Request {
    const SavedState& values;
    const TensorDict& batch;
    const std::string& table_name;
    ReplayBuffer& table;
  };

  ReplayService(Tables tables, int64_t server_number);

  absl::StatusOr<Message> Hello(const Request& request);
  absl::StatusOr<Message> Operation(const Request& request);
  absl::StatusOr<Message> Sample(const Request& request);
  // At least one batch and up to `count`, one behind the other, and the rows of
  // each.
  absl::StatusOr<TensorDict> Draw(const Request& request, int64_t batch_size,
                                  int64_t count, std::vector<int64_t>* rows);
  // int64 [rows] of server_number_, which all replies share.
  absl::StatusOr<Tensor> ServerNumbers(int64_t rows);
  absl::StatusOr<Message> UpdatePriorities(const Request& request);
  absl::StatusOr<Message> GetStats(const Request& request);

  const Tables tables_;
  const int64_t server_number_;
  std::map<const ReplayBuffer*, SentBatches> sent_;  // One a table.
  absl::Mutex server_numbers_mu_;
  // As long as the longest reply.
  std::optional<Tensor> server_numbers_ ABSL_GUARDED_BY(server_numbers_mu_);
  ClientLog clients_;
  // Operations read it, Save writes: rows and log are of one moment.
  mutable absl::Mutex pause_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_REPLAY_SERVICE_H_
