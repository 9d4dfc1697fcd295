// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_TOP_K_WRITER_H_
#define RILL_REPLAY_WRITERS_TOP_K_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/replay/writers/writer.h"

namespace rill {

// Keeps the k rows of the highest rank that were ever offered: TorchRL's
// TensorDictMaxValueWriter. A row whose rank is that of the lowest kept does
// not replace it. For storages of one lane; to keep the best trajectories, let
// a row be one.
//
// Rows of the storage that others wrote (a Load, another buffer, a WriteAt) are
// ranked when the next batch comes. They are never dropped, only replaced, so
// there may be more than k.
//
// Thread-safety: thread-safe, one write at a time.
// Cost: O(rows x log k) and the copies; O(k) once after others wrote. 24 bytes
//   a row kept.
// Numerics: integers are compared exactly, and their sums do not overflow;
//   means, and floats, as doubles.
//
// Example (TopKWriterTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto writer, TopKWriter::Create({.k = 100}));
//   RILL_RETURN_IF_ERROR(writer->Attach(storage));
//   RILL_RETURN_IF_ERROR(writer->Extend(steps).status());  // [time]
class TopKWriter {
 public:
  // How a row's rank is made of the values of the rank leaf.
  enum class Reduction : uint8_t { kSum, kMean, kMedian, kMin, kMax };

  struct Options {
    std::string rank_key = "next/reward";  // Any dtype with arithmetic.
    Reduction reduction = Reduction::kSum;
    int64_t k = 0;  // At most the storage's capacity; 0: that.
  };

  // INVALID_ARGUMENT names the option.
  //
  // Attach: INVALID_ARGUMENT where the storage has several lanes, or less room
  // than k. Extend: INVALID_ARGUMENT, nothing has changed, where a rank is NaN
  // (names the row), the rank leaf has no values, or its dtype no arithmetic;
  // NOT_FOUND where it is missing. Batches are [time] or [1, time]. A batch
  // that fills the last free places and replaces rows too is two writes: where
  // the device fails at the second, the first stays.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(const Options& options);
};

}  // namespace rill

#endif  // RILL_REPLAY_WRITERS_TOP_K_WRITER_H_
