// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_LINKS_LINK_MODEL_H_
#define RILL_BENCHMARKS_LINKS_LINK_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace rill {

// A run on many machines: collectors write to shards, one learner samples from
// all shards and serves its weights.
struct LinkModel {
  // Bytes a second, each way: a link carries both at once.
  double collector_rate = 1.25e9;
  double shard_rate = 1.25e9;
  double learner_rate = 1.25e9;

  double row_bytes = 0;
  double rows_a_second = 0;  // Of one collector.
  double batch = 256;        // Rows of a message.
  double samples_an_insert = 1;
  double weight_bytes = 0;
  double publish_seconds = 1;
  int64_t collectors = 1;
  int64_t shards = 1;
  // Programs that pull weights and serve them to collectors; 0: the learner
  // serves all collectors.
  int64_t relays = 0;
};

// INVALID_ARGUMENT names the field.
absl::Status CheckLinkModel(const LinkModel& model);

// One way of the link of one machine of a kind.
struct LinkLoad {
  std::string way;  // "learner in"
  double bytes_a_second = 0;
  double share = 0;  // Of the link's rate.
};

// collector out (inserts), collector in (weights), shard in (inserts and
// priorities), shard out (samples), learner in (samples), learner out (weights
// and priorities), in this order. Whatever else a message has, and what TCP
// adds, is in a fixed number of bytes a message.
std::vector<LinkLoad> LinkLoads(const LinkModel& model);

// The index in LinkLoads of the greatest share, and what would take that load
// off: "4 shards", "18 relays", "rows of 41 KB".
struct LinkBottleneck {
  size_t index = 0;
  std::string moved_by;  // "" where the share is at most 1.
};
LinkBottleneck FirstBottleneck(const LinkModel& model);

}  // namespace rill

#endif  // RILL_BENCHMARKS_LINKS_LINK_MODEL_H_
