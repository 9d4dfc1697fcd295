// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_PIECE_SCANNER_H_
#define RILL_SAMPLERS_TRAJECTORIES_PIECE_SCANNER_H_

#include <cstdint>

#include "absl/types/span.h"

namespace rill::samplers_internal {

// Cuts the per-row values of an event into pieces of one trajectory each. A
// piece goes on while the id stays, and ends with the row that has an end flag.
//
// Thread-safety: thread-compatible.
// Cost: a walk over all rows reads each flag and each id once or twice, 64
//   bytes at a time where nothing happens.
class PieceScanner {
 public:
  struct Piece {
    int64_t count = 0;
    bool is_end = false;  // Its last row has the flag.
  };

  // Either may be empty: no row ends, all rows are of one trajectory. Else they
  // are of one length, and live as long as this.
  PieceScanner(absl::Span<const uint8_t> ends, absl::Span<const int64_t> ids)
      : ends_(ends), ids_(ids) {}

  // The piece that begins at row `first` and has `limit` >= 1 rows at most.
  // `first` never goes back.
  Piece Next(int64_t first, int64_t limit);
  // The first row from `first` on, which never goes back, that has an end flag;
  // INT64_MAX where none has.
  int64_t NextEnd(int64_t first);

 private:
  absl::Span<const uint8_t> ends_;
  absl::Span<const int64_t> ids_;
  int64_t next_end_ = -1;     // The first flag at or behind the last `first`.
  int64_t next_change_ = -1;  // The first row behind it with another id.
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_TRAJECTORIES_PIECE_SCANNER_H_
