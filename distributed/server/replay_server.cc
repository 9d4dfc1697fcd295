// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/server/replay_server.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/server/server_config.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/service_set.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/replay_buffer.h"

namespace rill {
namespace {

constexpr absl::Duration kMetricsEvery = absl::Seconds(10);
constexpr char kHealth[] = "server/health";
constexpr char kMetrics[] = "server/metrics";

// A label's value as Prometheus wants it.
std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

}  // namespace

class ReplayServer::StatusService final : public Service {
 public:
  explicit StatusService(const ReplayServer* server) : server_(server) {}

  absl::StatusOr<Message> Call(const CallInfo& info, const Message&) override {
    Message reply;
    if (info.method == kHealth) {
      reply.values.Set("status", std::string("SERVING"));
      absl::MutexLock lock(&server_->mu_);
      reply.values.Set("failed_checkpoints", server_->failed_checkpoints_);
      return reply;
    }
    if (info.method == kMetrics) {
      reply.values.Set("text", server_->MetricsText());
      return reply;
    }
    return absl::UnimplementedError(absl::StrCat("ReplayServer: method: got \"",
                                                 info.method, "\", want ",
                                                 kHealth, " or ", kMetrics));
  }

 private:
  const ReplayServer* const server_;
};

ReplayServer::ReplayServer(ServerConfig config,
                           std::shared_ptr<ReplayService> service)
    : config_(std::move(config)), service_(std::move(service)) {}

absl::StatusOr<std::unique_ptr<ReplayServer>> ReplayServer::Start(
    std::shared_ptr<Transport> transport, ServerConfig config) {
  ReplayService::TableOptions options = std::move(config.tables);
  config.tables.clear();
  std::shared_ptr<ReplayService> service;
  if (!config.checkpoint_directory.empty() &&
      PathExists(config.checkpoint_directory)) {
    RILL_ASSIGN_OR_RETURN(
        service,
        ReplayService::Open(config.checkpoint_directory, std::move(options)));
  } else {
    ReplayService::Tables tables;
    for (auto& [name, of_table] : options) {
      RILL_ASSIGN_OR_RETURN(tables[name],
                            ReplayBuffer::Create(std::move(of_table)));
    }
    RILL_ASSIGN_OR_RETURN(service, ReplayService::Create(std::move(tables)));
  }
  auto server = std::unique_ptr<ReplayServer>(
      new ReplayServer(std::move(config), std::move(service)));
  auto services = std::make_shared<ServiceSet>(ServiceSet::Services{
      {"replay", server->service_},
      {"server", std::make_shared<StatusService>(server.get())}});
  RILL_ASSIGN_OR_RETURN(
      server->server_,
      transport->Listen(server->config_.listen, std::move(services)));
  server->timer_ = std::thread([of = server.get()] { of->RunTimer(); });
  return server;
}

ReplayServer::~ReplayServer() {
  // The services use this until all calls have ended.
  if (server_ != nullptr) {
    server_->Shutdown(absl::InfiniteFuture()).IgnoreError();
  }
  StopTimer();
}

absl::Status ReplayServer::Checkpoint() {
  if (config_.checkpoint_directory.empty()) {
    return FailedPrecondition(
        "ReplayServer::Checkpoint: the config has no checkpoint.directory");
  }
  const absl::Status saved = service_->Save(config_.checkpoint_directory);
  absl::MutexLock lock(&mu_);
  ++(saved.ok() ? checkpoints_ : failed_checkpoints_);
  return saved;
}

absl::Status ReplayServer::Shutdown(absl::Time deadline) {
  RILL_RETURN_IF_ERROR(server_->Shutdown(deadline));
  StopTimer();
  WriteMetrics();
  if (config_.checkpoint_directory.empty()) return absl::OkStatus();
  return Checkpoint();
}

std::string ReplayServer::MetricsText() const {
  std::string text;
  const auto add = [&](absl::string_view name, absl::string_view type,
                       const auto& value_of) {
    absl::StrAppend(&text, "# TYPE rill_replay_", name, " ", type, "\n");
    for (const auto& [table, buffer] : service_->tables()) {
      absl::StrAppend(&text, "rill_replay_", name, "{table=\"", Escaped(table),
                      "\"} ", value_of(buffer->GetStats()), "\n");
    }
  };
  using Stats = ReplayBuffer::Stats;
  add("rows", "gauge", [](const Stats& stats) { return stats.size; });
  add("capacity_rows", "gauge",
      [](const Stats& stats) { return stats.capacity; });
  add("written_rows_total", "counter",
      [](const Stats& stats) { return stats.rows_written; });
  add("sampled_items_total", "counter",
      [](const Stats& stats) { return stats.items_sampled; });
  add("batches_total", "counter",
      [](const Stats& stats) { return stats.batches; });
  absl::MutexLock lock(&mu_);
  absl::StrAppend(&text, "# TYPE rill_replay_checkpoints_total counter\n",
                  "rill_replay_checkpoints_total ", checkpoints_, "\n",
                  "# TYPE rill_replay_failed_checkpoints_total counter\n",
                  "rill_replay_failed_checkpoints_total ", failed_checkpoints_,
                  "\n");
  return text;
}

void ReplayServer::RunTimer() {
  const Clock& clock = Clock::System();
  absl::Time checkpoint_due = clock.Now() + config_.checkpoint_every;
  const auto is_ending = [this] {
    mu_.AssertReaderHeld();
    return is_ending_;
  };
  for (;;) {
    WriteMetrics();
    const absl::Time metrics_due = config_.metrics_file.empty()
                                       ? absl::InfiniteFuture()
                                       : clock.Now() + kMetricsEvery;
    {
      absl::MutexLock lock(&mu_);
      if (mu_.AwaitWithDeadline(absl::Condition(&is_ending),
                                std::min(checkpoint_due, metrics_due))) {
        return;
      }
    }
    if (clock.Now() < checkpoint_due) continue;
    if (const absl::Status saved = Checkpoint(); !saved.ok()) {
      LOG(ERROR) << "checkpoint: " << saved;
    }
    checkpoint_due = clock.Now() + config_.checkpoint_every;
  }
}

void ReplayServer::WriteMetrics() {
  if (config_.metrics_file.empty()) return;
  const absl::Status written =
      WriteFileAtomically(config_.metrics_file, MetricsText());
  if (!written.ok()) LOG(ERROR) << "metrics: " << written;
}

void ReplayServer::StopTimer() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  if (timer_.joinable()) timer_.join();
}

}  // namespace rill
