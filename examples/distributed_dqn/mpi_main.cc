// SPDX-License-Identifier: Apache-2.0
// The whole run as an MPI job: rank 0 learns, the next ones are shards, the
// others collect. A rank that dies ends the job; the same command with --resume
// goes on from its last checkpoint.
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/log/initialize.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/mpi/mpi_transport.h"
#include "rill/distributed/transport/ranks/rank_transport.h"
#include "rill/examples/distributed_dqn/collector.h"
#include "rill/examples/distributed_dqn/end_service.h"
#include "rill/examples/distributed_dqn/learner.h"
#include "rill/examples/distributed_dqn/shard.h"
#include "rill/examples/program/stop_signal.h"

ABSL_FLAG(std::string, run_dir, "",
          "folder of the checkpoints, for all ranks; required");
ABSL_FLAG(bool, resume, false,
          "go on from the checkpoints in run_dir, where there are some");
ABSL_FLAG(int64_t, shards, 2,
          "ranks 1 to this are shards; those behind them collect");
ABSL_FLAG(uint64_t, seed, 0, "of the learner");
ABSL_FLAG(int64_t, max_updates, 60'000, "of the learner, of all starts");
ABSL_FLAG(double, solve_return, 475, "the run ends where an evaluation has it");

namespace rill::distributed_dqn {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(50);
constexpr absl::Duration kEnd = absl::Seconds(30);

std::string RankName(int64_t rank) { return absl::StrCat("rank:", rank); }
std::string EndName(int64_t rank) {
  return absl::StrCat("rank:", rank, "/end");
}

// The roles of the ranks.
struct Job {
  int64_t ranks = 0;
  int64_t shards = 0;
  std::string run_dir = {};

  int64_t collectors() const { return ranks - 1 - shards; }
  std::vector<std::string> ShardNames() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < shards; ++i) names.push_back(RankName(1 + i));
    return names;
  }
};

// The folder of a rank's checkpoint. ALREADY_EXISTS where there is one and the
// run is not to be resumed.
absl::StatusOr<std::string> CheckpointOf(const Job& job,
                                         const std::string& part) {
  std::string path = absl::StrCat(job.run_dir, "/", part);
  if (!absl::GetFlag(FLAGS_resume) && PathExists(path)) {
    return absl::AlreadyExistsError(
        absl::StrCat("--run_dir: \"", path,
                     "\" is there; go on from it with --resume, or name "
                     "another folder"));
  }
  return path;
}

absl::Status RunAsShard(std::shared_ptr<RankTransport> transport,
                        const Job& job, EndService& end) {
  const int64_t shard = transport->rank() - 1;
  RILL_ASSIGN_OR_RETURN(const std::string checkpoint,
                        CheckpointOf(job, absl::StrCat("shard-", shard)));
  RILL_ASSIGN_OR_RETURN(const auto server,
                        StartShard(std::move(transport),
                                   {.shard = shard,
                                    .collectors = job.collectors() / job.shards,
                                    .checkpoint_directory = checkpoint,
                                    .checkpoint_every = absl::Seconds(1)}));
  while (!end.stop()) absl::SleepFor(kLook);
  const int64_t rows = server->service().table("replay")->size();
  RILL_RETURN_IF_ERROR(server->Shutdown(absl::Now() + kEnd));
  end.Done(rows);
  return absl::OkStatus();
}

absl::Status RunAsCollector(std::shared_ptr<RankTransport> transport,
                            const Job& job, EndService& end) {
  const int64_t collector = transport->rank() - 1 - job.shards;
  RILL_ASSIGN_OR_RETURN(
      const auto stats,
      RunCollector(std::move(transport), {.collector = collector,
                                          .shards = job.ShardNames(),
                                          .learner = RankName(0),
                                          .stop = &end.stop()}));
  end.Done(stats.acknowledged_rows);
  return absl::OkStatus();
}

absl::Status RunAsLearner(std::shared_ptr<RankTransport> transport,
                          const Job& job, const std::atomic<bool>& stop) {
  RILL_ASSIGN_OR_RETURN(const std::string checkpoint,
                        CheckpointOf(job, "learner"));
  const auto say = [](const std::string& line) {
    absl::PrintF("%s\n", line);
    std::fflush(stdout);
  };
  RILL_ASSIGN_OR_RETURN(
      const LearnerReport report,
      RunLearner(transport, {.shards = job.ShardNames(),
                             .checkpoint_directory = checkpoint,
                             .seed = absl::GetFlag(FLAGS_seed),
                             .max_updates = absl::GetFlag(FLAGS_max_updates),
                             .solve_return = absl::GetFlag(FLAGS_solve_return),
                             .stop = &stop,
                             .say = say}));
  // Collectors first: their last rows go to shards that are there.
  int64_t acknowledged = 0, stored = 0;
  for (int64_t rank = job.ranks - 1; rank > 0; --rank) {
    RILL_ASSIGN_OR_RETURN(const int64_t rows,
                          End(*transport, EndName(rank), absl::Now() + kEnd));
    (rank > job.shards ? acknowledged : stored) += rows;
  }
  say(absl::StrFormat(
      "%s: return %.1f after %d updates; %d rows acknowledged, %d stored",
      report.is_solved ? "solved" : "not solved", report.evaluation_return,
      report.updates, acknowledged, stored));
  return absl::OkStatus();
}

absl::Status Run(std::shared_ptr<RankTransport> transport) {
  const Job job = {.ranks = transport->num_ranks(),
                   .shards = absl::GetFlag(FLAGS_shards),
                   .run_dir = absl::GetFlag(FLAGS_run_dir)};
  if (job.run_dir.empty()) {
    return InvalidArgument("--run_dir: is missing, want a folder");
  }
  if (job.shards < 1 || job.collectors() < job.shards ||
      job.collectors() % job.shards != 0) {
    return InvalidArgument(
        "--shards: got ", job.shards, " of ", job.ranks,
        " ranks, want one for the learner and as many collectors for each "
        "shard, say 7 ranks and 2 shards");
  }
  RILL_RETURN_IF_ERROR(CreateDirectories(job.run_dir));
  const int64_t rank = transport->rank();
  if (rank == 0) {
    return RunAsLearner(std::move(transport), job,
                        examples::CatchStopSignals());
  }
  // A signal is for the whole job: the learner ends it in order.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  const auto end = std::make_shared<EndService>();
  RILL_ASSIGN_OR_RETURN(const auto server,
                        transport->Listen(EndName(rank), end));
  if (rank <= job.shards) return RunAsShard(std::move(transport), job, *end);
  return RunAsCollector(std::move(transport), job, *end);
}

}  // namespace
}  // namespace rill::distributed_dqn

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("All of distributed_dqn as a job of MPI.");
  absl::ParseCommandLine(argc, argv);
  absl::InitializeLog();
  absl::StatusOr<std::shared_ptr<rill::RankTransport>> transport =
      rill::CreateMpiTransport();
  absl::Status status = transport.status();
  if (status.ok()) status = rill::distributed_dqn::Run(*transport);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "%s\n", status.ToString());
  // The end of the transport would wait for the others; so mpirun ends them.
  std::_Exit(1);
}
