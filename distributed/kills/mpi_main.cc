// SPDX-License-Identifier: Apache-2.0
// A run that mpi_kills.py kills, as a job of MPI: a learner, shards, and
// collectors, in the order of their ranks.
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
#include "rill/distributed/kills/collector_part.h"
#include "rill/distributed/kills/learner_part.h"
#include "rill/distributed/kills/part_options.h"
#include "rill/distributed/kills/shard_part.h"
#include "rill/distributed/transport/mpi/mpi_transport.h"
#include "rill/distributed/transport/ranks/rank_transport.h"

ABSL_FLAG(std::string, directory, "", "of ledgers and checkpoints");
ABSL_FLAG(int64_t, start, 0, "how many jobs there were before");
ABSL_FLAG(int64_t, shards, 2, "how many");

namespace rill {
namespace {

absl::Status Run(std::shared_ptr<RankTransport> transport) {
  const int64_t shards = absl::GetFlag(FLAGS_shards);
  PartOptions options = {.directory = absl::GetFlag(FLAGS_directory),
                         .start = absl::GetFlag(FLAGS_start),
                         .learner = "rank:0",
                         .collectors = transport->num_ranks() - 1 - shards};
  for (int64_t i = 1; i <= shards; ++i) {
    options.shards.push_back(absl::StrCat("rank:", i));
  }
  const int64_t rank = transport->rank();
  if (rank == 0) return RunLearner(std::move(transport), options);
  options.number = rank <= shards ? rank - 1 : rank - 1 - shards;
  if (rank <= shards) return RunShard(std::move(transport), options);
  return RunCollector(std::move(transport), options);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("A run as a job of MPI that is killed.");
  absl::ParseCommandLine(argc, argv);
  absl::InitializeLog();
  absl::StatusOr<std::shared_ptr<rill::RankTransport>> transport =
      rill::CreateMpiTransport();
  absl::Status status = transport.status();
  if (status.ok()) status = rill::Run(*transport);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "%s\n", status.ToString());
  std::_Exit(1);  // The end of the transport would wait for the others.
}
