// SPDX-License-Identifier: Apache-2.0
#include "rill/benchmarks/links/link_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

// A sampled row has these beside its leaves: index, generation, server. A
// priority has them and a float.
constexpr double kIndexBytes = 24;
constexpr double kPriorityBytes = 28;
// A message and its answer without columns, over Flight with ten leaves.
constexpr double kMessageBytes = 3000;

enum Way : size_t {
  kCollectorOut,
  kCollectorIn,
  kShardIn,
  kShardOut,
  kLearnerIn,
  kLearnerOut,
};

}  // namespace

absl::Status CheckLinkModel(const LinkModel& model) {
  const std::pair<const char*, double> kPositive[] = {
      {"collector_rate", model.collector_rate},
      {"shard_rate", model.shard_rate},
      {"learner_rate", model.learner_rate},
      {"row_bytes", model.row_bytes},
      {"rows_a_second", model.rows_a_second},
      {"batch", model.batch},
      {"samples_an_insert", model.samples_an_insert},
      {"weight_bytes", model.weight_bytes},
      {"publish_seconds", model.publish_seconds},
      {"collectors", static_cast<double>(model.collectors)},
      {"shards", static_cast<double>(model.shards)},
  };
  for (const auto& [name, value] : kPositive) {
    if (std::isfinite(value) && value > 0) continue;
    return InvalidArgument("LinkModel: ", name, ": got ", value, ", want > 0");
  }
  if (model.relays < 0) {
    return InvalidArgument("LinkModel: relays: got ", model.relays,
                           ", want >= 0");
  }
  return absl::OkStatus();
}

std::vector<LinkLoad> LinkLoads(const LinkModel& model) {
  const auto shards = static_cast<double>(model.shards);
  const auto collectors = static_cast<double>(model.collectors);
  const double inserts = collectors * model.rows_a_second;
  const double samples = inserts * model.samples_an_insert;
  const double a_row = kMessageBytes / model.batch;
  const double weights = model.weight_bytes / model.publish_seconds;
  const double pulls =
      model.relays == 0
          ? collectors
          : std::min(collectors, static_cast<double>(model.relays));
  const double inserted = inserts * (model.row_bytes + a_row);
  const double sampled = samples * (model.row_bytes + kIndexBytes + a_row);
  const double priorities = samples * (kPriorityBytes + a_row);
  const auto load = [](std::string way, double bytes, double rate) {
    return LinkLoad{std::move(way), bytes, bytes / rate};
  };
  return {
      load("collector out", inserted / collectors, model.collector_rate),
      load("collector in", weights, model.collector_rate),
      load("shard in", (inserted + priorities) / shards, model.shard_rate),
      load("shard out", sampled / shards, model.shard_rate),
      load("learner in", sampled, model.learner_rate),
      load("learner out", pulls * weights + priorities, model.learner_rate),
  };
}

LinkBottleneck FirstBottleneck(const LinkModel& model) {
  const std::vector<LinkLoad> loads = LinkLoads(model);
  const auto most = std::max_element(
      loads.begin(), loads.end(),
      [](const LinkLoad& a, const LinkLoad& b) { return a.share < b.share; });
  LinkBottleneck result = {static_cast<size_t>(most - loads.begin()), ""};
  if (most->share <= 1) return result;
  switch (result.index) {
    case kShardIn:
    case kShardOut:
      result.moved_by = absl::StrFormat(
          "%.0f shards",
          std::ceil(static_cast<double>(model.shards) * most->share));
      break;
    case kLearnerOut:
      // A tree of two levels with the least of either.
      result.moved_by = absl::StrFormat("%.0f relays",
                                        std::ceil(std::sqrt(model.collectors)));
      break;
    case kCollectorIn:
      result.moved_by = absl::StrFormat("weights every %.1f s",
                                        model.publish_seconds * most->share);
      break;
    default:
      result.moved_by =
          absl::StrFormat("rows of %.0f B", model.row_bytes / most->share);
  }
  return result;
}

}  // namespace rill
