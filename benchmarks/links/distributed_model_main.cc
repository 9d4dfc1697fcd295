// SPDX-License-Identifier: Apache-2.0
// The load of each link of a run on many machines, as a table in Markdown.
// benchmarks/distributed_model runs it; --help tells the flags.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/links/link_model.h"

ABSL_FLAG(double, collector_gbits, 10, "link of a collector's machine, Gbit/s");
ABSL_FLAG(double, shard_gbits, 10, "link of a shard, Gbit/s");
ABSL_FLAG(double, learner_gbits, 10, "link of the learner, Gbit/s");
ABSL_FLAG(double, row_bytes, 56495, "of a row: two stacks of four frames");
ABSL_FLAG(double, rows_a_second, 100, "that one collector makes");
ABSL_FLAG(double, batch, 256, "rows of a message");
ABSL_FLAG(double, samples_an_insert, 1, "how often a row is sampled");
ABSL_FLAG(double, weight_bytes, 6.7e6, "of one version");
ABSL_FLAG(double, publish_seconds, 1, "between two versions");
ABSL_FLAG(int64_t, shards, 1, "replay servers");
ABSL_FLAG(int64_t, relays, 0,
          "programs that pass weights on; 0: the learner serves all");

namespace rill {
namespace {

constexpr int64_t kCollectors[] = {10, 30, 100, 300, 1000};

double BytesOf(double gbits) { return gbits * 1e9 / 8; }

absl::Status Run() {
  LinkModel model = {
      .collector_rate = BytesOf(absl::GetFlag(FLAGS_collector_gbits)),
      .shard_rate = BytesOf(absl::GetFlag(FLAGS_shard_gbits)),
      .learner_rate = BytesOf(absl::GetFlag(FLAGS_learner_gbits)),
      .row_bytes = absl::GetFlag(FLAGS_row_bytes),
      .rows_a_second = absl::GetFlag(FLAGS_rows_a_second),
      .batch = absl::GetFlag(FLAGS_batch),
      .samples_an_insert = absl::GetFlag(FLAGS_samples_an_insert),
      .weight_bytes = absl::GetFlag(FLAGS_weight_bytes),
      .publish_seconds = absl::GetFlag(FLAGS_publish_seconds),
      .shards = absl::GetFlag(FLAGS_shards),
      .relays = absl::GetFlag(FLAGS_relays)};
  RILL_RETURN_IF_ERROR(CheckLinkModel(model));
  std::string head = "| collectors |";
  std::string line = "|---|";
  for (const LinkLoad& load : LinkLoads(model)) {
    absl::StrAppend(&head, " ", load.way, " |");
    absl::StrAppend(&line, "---|");
  }
  absl::PrintF("%s first | moved by |\n%s---|---|\n", head, line);
  for (const int64_t collectors : kCollectors) {
    model.collectors = collectors;
    const std::vector<LinkLoad> loads = LinkLoads(model);
    absl::PrintF("| %d |", collectors);
    for (const LinkLoad& load : loads) {
      absl::PrintF(" %.0f MB/s, %.0f %% |", load.bytes_a_second / 1e6,
                   100 * load.share);
    }
    const LinkBottleneck first = FirstBottleneck(model);
    absl::PrintF(" %s | %s |\n", loads[first.index].way,
                 first.moved_by.empty() ? "-" : first.moved_by);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Bytes a second of inserts, samples and weights on each link.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = rill::Run();
  if (!status.ok()) absl::FPrintF(stderr, "%s\n", status.ToString());
  return status.ok() ? 0 : 1;
}
