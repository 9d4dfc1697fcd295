// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_KILLS_PART_OPTIONS_H_
#define RILL_DISTRIBUTED_KILLS_PART_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rill {

// The programs of a run that others kill. Each row says whose it is:
// `producer`, `start` (which of the producer's programs), `number` (of its
// rows, from 0), and `check`, which is made of these. So what became of every
// row can be told from the ledgers (ledger.h). judge.py does, and says which
// lines there are.
//
// A part works until the file stop-<its role> is in the directory.
struct PartOptions {
  std::string directory = {};
  int64_t number = 0;  // Of this shard, collector or learner.
  int64_t start = 0;   // How often there was one of this number before.
  std::string address = {};
  std::vector<std::string> shards = {};  // Collector i writes to i % shards.
  std::string learner = {};
  int64_t collectors = 4;       // Of the whole run.
  int64_t lane_rows = 300'000;  // Of each collector that a shard keeps.
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_KILLS_PART_OPTIONS_H_
