// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_REPLAY_PROTOCOL_H_
#define RILL_DISTRIBUTED_REPLAY_REPLAY_PROTOCOL_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rill::replay_protocol {

// The methods of ReplayService and their values. distributed/README.md has them
// as a table.
//
// The values of every request are of the type kRequest and name the table; all
// of a client's operations have its name.
inline constexpr absl::string_view kRequest = "ReplayRequest";
inline constexpr absl::string_view kReply = "ReplayReply";
inline constexpr int64_t kVersion = 1;
inline constexpr absl::string_view kTable = "table";

// Tells the server where the client goes on: `client`, and by `newest` and
// `rows` the operations, and the rows written by these, whose replies it has.
// The reply's `lost` are those of the rows that the server does not have.
// `server` is a number that no other start of a server has.
inline constexpr absl::string_view kHello = "replay/hello";
inline constexpr absl::string_view kClient = "client";
inline constexpr absl::string_view kNewest = "newest";
inline constexpr absl::string_view kRows = "rows";
inline constexpr absl::string_view kLost = "lost";
inline constexpr absl::string_view kServer = "server";

// An operation of a client, by its number from 1: `kind` kWrite with the batch
// [lanes, time], kCut, kFlush. The other values are those of WriteInfo and
// LaneRange.
inline constexpr absl::string_view kOperation = "replay/operation";
inline constexpr absl::string_view kNumber = "number";
inline constexpr absl::string_view kKind = "kind";
inline constexpr int64_t kWrite = 0;
inline constexpr int64_t kCut = 1;
inline constexpr int64_t kFlush = 2;
inline constexpr absl::string_view kProducer = "producer";
inline constexpr absl::string_view kFirstLane = "first_lane";
inline constexpr absl::string_view kLanes = "lanes";
inline constexpr absl::string_view kPolicyVersion = "policy_version";
inline constexpr absl::string_view kSequence = "sequence";
inline constexpr absl::string_view kSource = "source";

// A batch of `batch_size` items; 0: as many as the table has set. Its rows have
// kServerKey beside their `index` and `index_generation`. With a `count` in
// [1, 64] up to so many batches come, one behind the other, and `batch_rows`
// are the rows of each: those that could be drawn at once. The reply has the
// table's `size`, and of a table with priorities kPrioritySum, kPriorityMin and
// kBeta (PriorityMass) behind the draw; so has that of kStats.
inline constexpr absl::string_view kSample = "replay/sample";
inline constexpr absl::string_view kBatchSize = "batch_size";
inline constexpr absl::string_view kCount = "count";
inline constexpr int64_t kMostCount = 64;
inline constexpr absl::string_view kBatchRows = "batch_rows";
inline constexpr absl::string_view kServerKey = "index_server";
inline constexpr absl::string_view kPrioritySum = "priority_sum";
inline constexpr absl::string_view kPriorityMin = "priority_min";
inline constexpr absl::string_view kBeta = "beta";

// Priorities of a sample: its index, generation and server leaves, those that
// number sequences, and either the leaf kPriorityKey float32 or
// the list kPriorities. The reply's `stale` is the number of rows of another
// start of the server.
inline constexpr absl::string_view kUpdate = "replay/priorities";
inline constexpr absl::string_view kPriorityKey = "priority";
inline constexpr absl::string_view kPriorities = "priorities";
inline constexpr absl::string_view kStale = "stale";

// The table's `size`, `capacity`, `batches` drawn, and `clients` that wrote;
// `server` as in a greeting.
inline constexpr absl::string_view kStats = "replay/stats";
inline constexpr absl::string_view kSize = "size";
inline constexpr absl::string_view kCapacity = "capacity";
inline constexpr absl::string_view kBatches = "batches";
inline constexpr absl::string_view kClients = "clients";

}  // namespace rill::replay_protocol

#endif  // RILL_DISTRIBUTED_REPLAY_REPLAY_PROTOCOL_H_
