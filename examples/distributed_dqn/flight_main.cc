// SPDX-License-Identifier: Apache-2.0
// One of the run's programs over Arrow Flight: a shard, a collector or the
// learner.
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/log/initialize.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/flight/flight_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/examples/distributed_dqn/collector.h"
#include "rill/examples/distributed_dqn/learner.h"
#include "rill/examples/distributed_dqn/shard.h"
#include "rill/examples/program/stop_signal.h"

ABSL_FLAG(std::string, role, "", "shard, collector or learner");
ABSL_FLAG(
    std::string, address, "",
    "where a shard or the learner listens; \"\": a free port of 127.0.0.1");
ABSL_FLAG(std::vector<std::string>, shards, {}, "addresses, with commas");
ABSL_FLAG(std::string, learner, "", "address, for collectors");
ABSL_FLAG(int64_t, number, 0, "of the shard or the collector, from 0");
ABSL_FLAG(int64_t, collectors, 4, "of the whole run, for a shard");
ABSL_FLAG(std::string, checkpoint, "",
          "folder of a shard or the learner, to go on from; none: \"\"");
ABSL_FLAG(std::string, token_file, "",
          "file with the token that all programs of the run send; none: \"\"");
ABSL_FLAG(uint64_t, seed, 0, "of the learner");
ABSL_FLAG(int64_t, max_updates, 60'000, "of the learner");

namespace rill::distributed_dqn {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(50);

void Say(const std::string& line) {
  absl::PrintF("%s\n", line);
  std::fflush(stdout);
}

absl::Status RunAsShard(std::shared_ptr<Transport> transport,
                        const std::atomic<bool>& stop) {
  const auto shards = absl::GetFlag(FLAGS_shards).size();
  RILL_ASSIGN_OR_RETURN(
      const auto shard,
      StartShard(std::move(transport),
                 {.address = absl::GetFlag(FLAGS_address),
                  .shard = absl::GetFlag(FLAGS_number),
                  .collectors = absl::GetFlag(FLAGS_collectors) /
                                static_cast<int64_t>(shards == 0 ? 2 : shards),
                  .checkpoint_directory = absl::GetFlag(FLAGS_checkpoint),
                  .checkpoint_every = absl::Seconds(1)}));
  Say("serving at " + shard->address());
  while (!stop) absl::SleepFor(kLook);
  return shard->Shutdown(absl::Now() + absl::Seconds(5));
}

absl::Status Run(const std::atomic<bool>& stop) {
  FlightOptions flight;
  if (const std::string path = absl::GetFlag(FLAGS_token_file); !path.empty()) {
    RILL_ASSIGN_OR_RETURN(const std::string token, ReadFile(path));
    flight.token = std::string(absl::StripAsciiWhitespace(token));
  }
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Transport> transport,
                        FlightTransport::Create(flight));
  const std::string role = absl::GetFlag(FLAGS_role);
  if (role == "shard") return RunAsShard(std::move(transport), stop);
  if (role == "collector") {
    RILL_ASSIGN_OR_RETURN(
        const auto stats,
        RunCollector(std::move(transport),
                     {.collector = absl::GetFlag(FLAGS_number),
                      .shards = absl::GetFlag(FLAGS_shards),
                      .learner = absl::GetFlag(FLAGS_learner),
                      .stop = &stop}));
    Say(absl::StrFormat("%d rows acknowledged, %d lost",
                        stats.acknowledged_rows, stats.lost_rows));
    return absl::OkStatus();
  }
  if (role != "learner") {
    return InvalidArgument("--role: got \"", role,
                           "\", want shard, collector or learner");
  }
  RILL_ASSIGN_OR_RETURN(
      const auto report,
      RunLearner(std::move(transport),
                 {.address = absl::GetFlag(FLAGS_address),
                  .shards = absl::GetFlag(FLAGS_shards),
                  .checkpoint_directory = absl::GetFlag(FLAGS_checkpoint),
                  .seed = absl::GetFlag(FLAGS_seed),
                  .max_updates = absl::GetFlag(FLAGS_max_updates),
                  .stop = &stop,
                  .say = Say}));
  Say(absl::StrFormat("%s: return %.1f after %d updates",
                      report.is_solved ? "solved" : "not solved",
                      report.evaluation_return, report.updates));
  if (stop && !report.is_solved) {
    // A supervisor of programs starts it again.
    return absl::CancelledError("the learner was stopped by a signal");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill::distributed_dqn

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "A program of distributed_dqn over Arrow Flight.");
  absl::ParseCommandLine(argc, argv);
  absl::InitializeLog();
  const absl::Status status =
      rill::distributed_dqn::Run(rill::examples::CatchStopSignals());
  if (!status.ok()) absl::FPrintF(stderr, "%s\n", status.ToString());
  return status.ok() ? 0 : 1;
}
