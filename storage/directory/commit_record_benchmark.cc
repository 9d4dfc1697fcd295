// SPDX-License-Identifier: Apache-2.0
// The cost that the record adds to an append.
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/slots/slot.h"
#include "rill/storage/directory/commit_record.h"

namespace rill::storage_internal {
namespace {

void AnnounceAndCommit(benchmark::State& state) {
  const Lanes lanes = {.count = state.range(0), .capacity = 1000};
  std::vector<std::byte> bytes(CommitRecord::SizeBytes(lanes.count));
  CommitRecord record(absl::MakeSpan(bytes), lanes,
                      std::vector<LaneMark>(lanes.count));
  const LaneSteps append = {.first = 0, .count = lanes.count, .steps = 1};
  for (auto _ : state) {
    record.Announce(append);
    record.Commit(append);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(AnnounceAndCommit)->Arg(1)->Arg(64)->Arg(4096);

}  // namespace
}  // namespace rill::storage_internal
