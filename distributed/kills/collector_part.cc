// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/kills/collector_part.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/short_calls.h"
#include "rill/distributed/kills/ledger.h"
#include "rill/distributed/kills/part_options.h"
#include "rill/distributed/kills/part_rows.h"
#include "rill/distributed/kills/part_weights.h"
#include "rill/distributed/replay/remote_sink.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/weights/remote_weights.h"
#include "rill/flow/producers.h"
#include "rill/flow/sink.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

constexpr int64_t kMostRows = 16;  // Of a batch.
constexpr int64_t kCutEvery = 8;   // Batches.
constexpr int64_t kPullEvery = 4;  // Batches.
constexpr absl::Duration kLongestPause = absl::Milliseconds(80);

// Takes the newest weights, where the learner is there. They are whole.
absl::Status PullOnce(RemoteWeights& weights, WeightStore::Reader& reader) {
  const absl::Status pulled = weights.Pull().status();
  if (!IsForNow(pulled)) {
    RILL_RETURN_IF_ERROR(pulled);
  }
  const WeightStore::Snapshot latest = reader.Latest();
  RILL_ASSIGN_OR_RETURN(const TensorDict want, WeightsOf(latest.version));
  return latest.weights.CheckEqual(want);
}

void SayRows(const RemoteSink& sink, int64_t version, Ledger& ledger) {
  const RemoteSink::Stats stats = sink.GetStats();
  ledger.Line("rows", stats.acknowledged_rows, stats.lost_rows, version);
}

}  // namespace

absl::Status RunCollector(std::shared_ptr<Transport> transport,
                          const PartOptions& options) {
  RILL_ASSIGN_OR_RETURN(const auto ledger,
                        Ledger::Create(options.directory, "collector",
                                       options.number, options.start));
  const auto shards = static_cast<int64_t>(options.shards.size());
  const std::string& shard =
      options.shards[static_cast<size_t>(options.number % shards)];
  RILL_ASSIGN_OR_RETURN(
      const auto weights, MakeWhenThere([&] {
        return RemoteWeights::Create(
            {.server = ShortCallsTo(transport, options.learner)});
      }));
  RILL_ASSIGN_OR_RETURN(const auto reader, weights->store().OpenReader());
  RILL_ASSIGN_OR_RETURN(
      const auto sink, MakeWhenThere([&] {
        return RemoteSink::Create({.server = ShortCallsTo(transport, shard)});
      }));
  const RowOrigin origin = {.producer = options.number, .start = options.start};
  const Rng rng(static_cast<uint64_t>(options.number));
  const auto start = static_cast<uint64_t>(options.start);
  const std::string stop = absl::StrCat(options.directory, "/stop-collector");
  WriteInfo info = {.producer = options.number,
                    .first_lane = options.number / shards,
                    .source = NewSource()};
  int64_t written = 0;
  uint32_t draws = 0;
  while (!PathExists(stop)) {
    if (info.sequence % kPullEvery == 0) {
      RILL_RETURN_IF_ERROR(PullOnce(*weights, *reader));
    }
    const int64_t count = 1 + rng.UniformInt(start, draws++, kMostRows);
    RILL_ASSIGN_OR_RETURN(const TensorDict rows,
                          MakeRows(origin, written, count));
    ++info.sequence;
    absl::Status status = sink->Write(rows, info);
    while (IsForNow(status)) {
      SayRows(*sink, weights->store().version(), *ledger);
      status = sink->Write(rows, info);
    }
    RILL_RETURN_IF_ERROR(status);
    written += count;
    if (info.sequence % kCutEvery == 0) {
      status = sink->Cut(info.producer, {.first = info.first_lane, .count = 1});
      if (!IsForNow(status)) {
        RILL_RETURN_IF_ERROR(status);
      }
    }
    SayRows(*sink, weights->store().version(), *ledger);
    absl::SleepFor(rng.UniformDouble(start, draws++) * kLongestPause);
  }
  absl::Status flushed = sink->Flush();
  while (IsForNow(flushed)) flushed = sink->Flush();
  RILL_RETURN_IF_ERROR(flushed);
  SayRows(*sink, weights->store().version(), *ledger);
  ledger->Line("end", written);
  return absl::OkStatus();
}

}  // namespace rill
