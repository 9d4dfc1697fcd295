// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_FUSED_GATHER_H_
#define RILL_REPLAY_SAMPLING_FUSED_GATHER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/row_reader.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/rows/gather_plan.h"
#include "rill/transforms/rows/row_pipeline.h"

namespace rill::replay_internal {

// The number of a leaf that is in spec.leaves().
size_t NumberOf(const TensorDictSpec& spec, absl::string_view key);

// Gathers rows straight through a chain of transforms (GatherPlan). A few rows
// at a time go from the storage into the processor's cache, through the maps
// there, and into the batch. No batch is made between the transforms.
//
// Thread-safety: thread-compatible.
// Cost: that of the gather and the maps. Allocates nothing after Create.
class FusedGather {
 public:
  // A leaf of the rows whose maps read it where it lies (Storage::ShowRows),
  // not from a copy. A row is as many parts of the same size, which are rows of
  // these leaves of the storage.
  struct Shown {
    std::string key;
    std::vector<size_t> parts;
  };

  // `rows` is the storage's spec; the plan's leaves come from leaves of it.
  // Errors of the maps. Those of `shown` that IsShowable are read so.
  static absl::StatusOr<FusedGather> Create(const GatherPlan& plan,
                                            const TensorDictSpec& rows,
                                            std::vector<Shown> shown = {});
  // True if all that the plan makes of a leaf can be made of `parts` parts of
  // its rows.
  static bool IsShowable(const GatherPlan& plan, absl::string_view key,
                         size_t parts);

  // The batch's spec, before the leaves that a sample adds.
  const TensorDictSpec& spec() const { return spec_; }
  // True if leaf i of spec() goes through maps: then its place is flat, else
  // rows of a place may lie at any distance.
  bool IsMapped(size_t i) const;

  // The rows at `slots` into one place for each leaf of spec(), in that order,
  // which hold as many rows, on the host. Errors as
  // Storage::ReadInto, and of the maps, which name the leaf.
  absl::Status Read(const RowReader& storage, absl::Span<const Slot> slots,
                    absl::Span<const BoundLeaf> places);

  // Leaf `key` of Shown alone: slots[r * parts + i] is part i of row r.
  absl::Status ReadShown(const RowReader& storage, absl::string_view key,
                         absl::Span<const Slot> slots,
                         absl::Span<const BoundLeaf> places);
  // The leaves that are not Shown, of rows that are gathered: `rows`, [n], lie
  // one after another in host memory. They go into rows [first, first + n) of
  // the places.
  absl::Status Map(const TensorDict& rows, int64_t first,
                   absl::Span<const BoundLeaf> places) const;
  // Behind a batch: its bytes are there for all threads.
  static void EndStreams() { RowPipeline::EndStreams(); }

 private:
  // Leaves of the rows and where they go.
  struct Gather {
    std::vector<size_t> leaves;
    std::vector<size_t> into;
    std::vector<BoundLeaf> places;
  };
  struct Mapped {
    size_t into = 0;
    int64_t width = 0;  // Of a row that comes out.
    std::string from;
    std::byte* block = nullptr;      // Of `from`, and of all others from there.
    std::vector<size_t> parts = {};  // Shown::parts; empty: it is not shown.
    RowPipeline pipeline;
  };

  FusedGather() = default;

  absl::Status ReadShown(const RowReader& storage, const Mapped& mapped,
                         absl::Span<const Slot> slots, const BoundLeaf& to);
  absl::Status ReadBlock(const RowReader& storage, absl::Span<const Slot> slots,
                         int64_t first, absl::Span<const BoundLeaf> places);

  TensorDictSpec spec_;
  // Leaves without maps; each goes to one place in one of these.
  std::vector<Gather> copied_;
  std::vector<std::string> row_keys_;
  std::vector<Mapped> mapped_;
  Gather blocks_;  // The leaves that mapped_ come from, each once.
  int64_t block_rows_ = 0;
  std::vector<Slot> part_slots_;  // Of ReadShown, and whose parts they are.
  std::vector<int64_t> part_numbers_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_FUSED_GATHER_H_
