// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/kills/shard_part.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/kills/ledger.h"
#include "rill/distributed/kills/part_options.h"
#include "rill/distributed/kills/part_rows.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/server/replay_server.h"
#include "rill/distributed/server/server_config.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/live_rows/live_rows.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

constexpr char kTable[] = "replay";
constexpr absl::Duration kLook = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);  // Of checkpoints.
constexpr absl::Duration kEnd = absl::Seconds(30);

absl::StatusOr<ReplayService::TableOptions> Tables(const PartOptions& options) {
  const int64_t lanes =
      options.collectors / static_cast<int64_t>(options.shards.size());
  ReplayBuffer::Options table;
  RILL_ASSIGN_OR_RETURN(
      table.storage,
      DenseStorage::Create(
          {.capacity = lanes * options.lane_rows, .lanes = lanes}));
  RILL_ASSIGN_OR_RETURN(table.sampler, MakePrioritizedSampler());
  ReplayService::TableOptions tables;
  tables[kTable] = std::move(table);
  return tables;
}

// A line `has` for each run of rows, then `has_all`.
absl::Status SayRows(ReplayBuffer& table, Ledger& ledger) {
  if (table.size() > 0) {
    RILL_ASSIGN_OR_RETURN(const TensorDict rows,
                          table.ReadAll(LiveRowsShape::kFlat));
    RILL_RETURN_IF_ERROR(VisitRuns(
        rows, [&](const RowOrigin& origin, int64_t first, int64_t last) {
          ledger.Line("has", origin.producer, origin.start, first, last);
        }));
  }
  ledger.Line("has_all");
  return absl::OkStatus();
}

}  // namespace

absl::Status RunShard(std::shared_ptr<Transport> transport,
                      const PartOptions& options) {
  RILL_ASSIGN_OR_RETURN(const auto ledger,
                        Ledger::Create(options.directory, "shard",
                                       options.number, options.start));
  ServerConfig config = {
      .listen = options.address,
      .checkpoint_directory = absl::StrCat(
          options.directory, "/checkpoint-shard-", options.number)};
  RILL_ASSIGN_OR_RETURN(config.tables, Tables(options));
  if (PathExists(config.checkpoint_directory)) {
    // The server will begin with these, before anybody can write to it.
    RILL_ASSIGN_OR_RETURN(auto tables, Tables(options));
    RILL_ASSIGN_OR_RETURN(
        const auto saved,
        ReplayService::Open(config.checkpoint_directory, std::move(tables)));
    RILL_RETURN_IF_ERROR(SayRows(*saved->table(kTable), *ledger));
  } else {
    ledger->Line("has_all");
  }
  RILL_ASSIGN_OR_RETURN(
      const auto server,
      ReplayServer::Start(std::move(transport), std::move(config)));
  ledger->Line("serving");

  const Rng rng(static_cast<uint64_t>(options.number));
  const std::string stop = absl::StrCat(options.directory, "/stop-shard");
  for (uint64_t saves = 0; !PathExists(stop); ++saves) {
    const absl::Time next =
        Clock::Steady().Now() +
        rng.UniformDouble(static_cast<uint64_t>(options.start),
                          static_cast<uint32_t>(saves)) *
            kLongestPause;
    while (Clock::Steady().Now() < next && !PathExists(stop)) {
      absl::SleepFor(kLook);
    }
    ledger->Line("saving");
    RILL_RETURN_IF_ERROR(server->Checkpoint());
    ledger->Line("saved");
  }
  RILL_RETURN_IF_ERROR(server->Shutdown(Clock::System().Now() + kEnd));
  RILL_RETURN_IF_ERROR(SayRows(*server->service().table(kTable), *ledger));
  ledger->Line("end");
  return absl::OkStatus();
}

}  // namespace rill
