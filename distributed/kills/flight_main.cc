// SPDX-License-Identifier: Apache-2.0
// One of the programs that kills.py starts and kills, over Arrow Flight.
#include <cstdint>
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
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/kills/collector_part.h"
#include "rill/distributed/kills/learner_part.h"
#include "rill/distributed/kills/part_options.h"
#include "rill/distributed/kills/shard_part.h"
#include "rill/distributed/transport/flight/flight_transport.h"
#include "rill/distributed/transport/transport.h"

ABSL_FLAG(std::string, role, "", "shard, collector or learner");
ABSL_FLAG(std::string, directory, "", "of ledgers and checkpoints");
ABSL_FLAG(int64_t, number, 0, "of this part among those of its role");
ABSL_FLAG(int64_t, start, 0, "how often there was one before");
ABSL_FLAG(std::string, address, "", "where a shard or a learner listens");
ABSL_FLAG(std::vector<std::string>, shards, {}, "addresses, with commas");
ABSL_FLAG(std::string, learner, "", "address, for collectors");
ABSL_FLAG(int64_t, lane_rows, 300'000, "of a collector that a shard keeps");

namespace rill {
namespace {

absl::Status Run() {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Transport> transport,
                        FlightTransport::Create());
  const PartOptions options = {.directory = absl::GetFlag(FLAGS_directory),
                               .number = absl::GetFlag(FLAGS_number),
                               .start = absl::GetFlag(FLAGS_start),
                               .address = absl::GetFlag(FLAGS_address),
                               .shards = absl::GetFlag(FLAGS_shards),
                               .learner = absl::GetFlag(FLAGS_learner),
                               .lane_rows = absl::GetFlag(FLAGS_lane_rows)};
  const std::string role = absl::GetFlag(FLAGS_role);
  if (role == "shard") return RunShard(std::move(transport), options);
  if (role == "collector") return RunCollector(std::move(transport), options);
  if (role == "learner") return RunLearner(std::move(transport), options);
  return InvalidArgument("--role: got \"", role,
                         "\", want shard, collector or learner");
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("A program of a run that is killed.");
  absl::ParseCommandLine(argc, argv);
  absl::InitializeLog();
  const absl::Status status = rill::Run();
  if (!status.ok()) absl::FPrintF(stderr, "%s\n", status.ToString());
  return status.ok() ? 0 : 1;
}
