// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_SERVER_REPLAY_SERVER_H_
#define RILL_DISTRIBUTED_SERVER_REPLAY_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/server/server_config.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// A replay server as a program runs it: the tables of a ServerConfig behind an
// address, a checkpoint at a signal, on a timer and at the end, and metrics.
//
// Where the checkpoint's directory is there, the server goes on from it. Rows
// that lie in the files of a table are discarded then; they stay where the
// directory holds no checkpoint of these tables, which is an error. A
// checkpoint that fails (a full disk) leaves the last one, is counted, and the
// server goes on.
//
// Methods besides ReplayService's, without values:
// - "server/health": `status` "SERVING", and `failed_checkpoints`.
// - "server/metrics": `text`, as MetricsText.
//
// Thread-safety: thread-safe.
//
// Example (ReplayServerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(ServerConfig config, ServerConfig::Parse(json));
//   RILL_ASSIGN_OR_RETURN(auto server,
//                         ReplayServer::Start(transport, std::move(config)));
//   LOG(INFO) << "serving at " << server->address();
//   RILL_RETURN_IF_ERROR(server->Shutdown(deadline));
class ReplayServer {
 public:
  // Errors as ReplayService::Create and Open, and Transport::Listen.
  static absl::StatusOr<std::unique_ptr<ReplayServer>> Start(
      std::shared_ptr<Transport> transport, ServerConfig config);
  // Without a checkpoint: Shutdown makes one.
  ~ReplayServer();

  const std::string& address() const { return server_->address(); }
  ReplayService& service() { return *service_; }

  // Errors as ReplayService::Save. FAILED_PRECONDITION without a directory.
  absl::Status Checkpoint();
  // Takes no more calls, waits for those under way until `deadline`, and makes
  // the last checkpoint, where there is a directory.
  absl::Status Shutdown(absl::Time deadline);

  // Numbers of all tables in Prometheus' text format; what metrics_file holds.
  std::string MetricsText() const;

 private:
  class StatusService;

  ReplayServer(ServerConfig config, std::shared_ptr<ReplayService> service);

  // Writes what is due until the end.
  void RunTimer();
  void WriteMetrics();
  void StopTimer();

  const ServerConfig config_;
  const std::shared_ptr<ReplayService> service_;
  std::unique_ptr<Server> server_;
  std::thread timer_;
  mutable absl::Mutex mu_;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  int64_t checkpoints_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t failed_checkpoints_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_SERVER_REPLAY_SERVER_H_
