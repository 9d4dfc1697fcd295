// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/buffer_stats.h"

namespace rill {

BufferStats::Rates BufferStats::RatesSince(const BufferStats& earlier) const {
  const double seconds = absl::ToDoubleSeconds(elapsed - earlier.elapsed);
  if (!(seconds > 0)) return {};
  const auto rate = [seconds](int64_t now, int64_t before) {
    return static_cast<double>(now - before) / seconds;
  };
  return {.rows_written = rate(rows_written, earlier.rows_written),
          .items_sampled = rate(items_sampled, earlier.items_sampled),
          .batches = rate(batches, earlier.batches)};
}

}  // namespace rill
