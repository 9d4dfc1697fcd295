// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/distributed_dqn/one_process.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/remote_sink.h"
#include "rill/distributed/server/replay_server.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/examples/distributed_dqn/collector.h"
#include "rill/examples/distributed_dqn/learner.h"
#include "rill/examples/distributed_dqn/shard.h"

namespace rill::distributed_dqn {
namespace {

constexpr char kLearner[] = "learner";
constexpr absl::Duration kLook = absl::Milliseconds(10);
constexpr absl::Duration kEnd = absl::Seconds(5);

std::string ShardName(int64_t shard) { return absl::StrCat("shard-", shard); }

// Where that part of the run has its checkpoint.
std::string PartOf(const OneProcessOptions& options, const std::string& part) {
  if (options.checkpoint_directory.empty()) return "";
  return absl::StrCat(options.checkpoint_directory, "/", part);
}

ShardOptions OptionsOf(const OneProcessOptions& options, int64_t shard) {
  return {.address = ShardName(shard),
          .shard = shard,
          .collectors = options.collectors / options.shards,
          .checkpoint_directory = PartOf(options, ShardName(shard))};
}

}  // namespace

absl::StatusOr<OneProcessReport> RunInOneProcess(
    const OneProcessOptions& options) {
  if (options.shards < 1 || options.collectors < options.shards ||
      options.collectors % options.shards != 0) {
    return InvalidArgument("RunInOneProcess: got ", options.collectors,
                           " collectors and ", options.shards,
                           " shards, want as many collectors for each shard");
  }
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<InprocTransport> transport,
                        InprocTransport::Create());
  std::vector<std::string> names;
  std::vector<std::unique_ptr<ReplayServer>> shards;
  for (int64_t i = 0; i < options.shards; ++i) {
    names.push_back(ShardName(i));
    RILL_ASSIGN_OR_RETURN(shards.emplace_back(),
                          StartShard(transport, OptionsOf(options, i)));
  }

  OneProcessReport report;
  std::atomic<bool> learner_is_done = false;
  absl::StatusOr<LearnerReport> learned = absl::UnknownError("");
  std::thread learner([&] {
    learned = RunLearner(transport,
                         {.address = kLearner,
                          .shards = names,
                          .checkpoint_directory = PartOf(options, kLearner),
                          .seed = options.seed,
                          .max_updates = options.max_updates,
                          .evaluate_every = options.evaluate_every,
                          .solve_return = options.solve_return,
                          .stop = options.stop,
                          .say = options.say});
    learner_is_done = true;
  });
  std::atomic<bool> stop_collectors = false;
  std::vector<absl::StatusOr<RemoteSink::Stats>> collected(
      options.collectors, absl::UnknownError(""));
  std::vector<std::thread> collectors;
  for (int64_t i = 0; i < options.collectors; ++i) {
    collectors.emplace_back([&, i] {
      collected[i] = RunCollector(transport, {.collector = i,
                                              .shards = names,
                                              .learner = kLearner,
                                              .stop = &stop_collectors});
    });
  }

  absl::Status status;
  absl::Time next_kill = absl::Now() + options.kill_every;
  while (!learner_is_done && status.ok()) {
    absl::SleepFor(kLook);
    if (absl::Now() < next_kill) continue;
    next_kill += options.kill_every;
    const int64_t victim = report.kills++ % options.shards;
    transport->Kill(ShardName(victim));
    shards[victim] = nullptr;
    auto again = StartShard(transport, OptionsOf(options, victim));
    status = again.status();
    if (again.ok()) shards[victim] = *std::move(again);
  }
  learner.join();
  stop_collectors = true;
  for (std::thread& collector : collectors) collector.join();
  RILL_RETURN_IF_ERROR(status);
  RILL_ASSIGN_OR_RETURN(report.learner, std::move(learned));
  for (const auto& stats : collected) {
    RILL_RETURN_IF_ERROR(stats.status());
    report.rows_acknowledged += stats->acknowledged_rows;
    report.rows_lost += stats->lost_rows;
  }
  for (const auto& shard : shards) {
    report.rows_stored += shard->service().table("replay")->size();
    RILL_RETURN_IF_ERROR(shard->Shutdown(absl::Now() + kEnd));
  }
  return report;
}

}  // namespace rill::distributed_dqn
