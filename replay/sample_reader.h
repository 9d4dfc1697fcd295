// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLE_READER_H_
#define RILL_REPLAY_SAMPLE_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/spec_tree.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/unit_transform.h"

namespace rill::replay_internal {

// Turns a plan into a batch: one gather, the leaves that say where the rows
// came from, and what the unit's transform makes of it.
//
// Thread-safety: thread-compatible.
// Cost: O(rows + leaves^2). Without a unit's transform allocates nothing where
//   `out` fits. It then holds just the leaves of a sample of this size, each
//   writable, in the right memory, and no two over the same bytes. Stored
//   leaves may have rows at any distance, those that are added are contiguous.
//   With a transform, each leaf that it asks for is read once, and no other.
class SampleReader {
 public:
  struct Options {
    bool is_weighted = false;
    // Of new leaves, where the rows lie in host memory.
    Tensor::Options memory = {};
    // Null: a row's leaves are the batch's. Not owned.
    const UnitTransform* unit = nullptr;
    std::string sampler = "";  // Sampler::name(), for errors.
  };

  explicit SampleReader(const Options& options) : options_(options) {}

  // What Read makes of rows with this spec. INVALID_ARGUMENT where the rows
  // have one of the keys that it adds; errors of the unit's transform.
  absl::StatusOr<TensorDictSpec> SampleSpec(const TensorDictSpec& rows) const;

  // OUT_OF_RANGE where a row was cleared since the plan. With an error `out` is
  // unspecified.
  absl::Status Read(const Storage& storage, const SamplePlan& plan,
                    TensorDict* out);

 private:
  absl::Status Learn(const Storage& storage);
  absl::Status ReadInto(const Storage& storage, absl::Span<const Slot> slots,
                        absl::Span<const std::string> keys);
  absl::Status ReadForUnit(const Storage& storage, absl::Span<const Slot> slots,
                           const SamplePlan& plan);
  absl::Span<const Slot> SlotsOf(const SamplePlan& plan);
  bool MayWrite(const Tensor& leaf, DType dtype, int64_t n,
                const Shape& row_shape, const ReuseRules& rules);
  Tensor::Options RowMemory(const Storage& storage) const;
  bool IsAlone(const Tensor& leaf);
  bool IsBatchBefore();
  bool Adopt(const Storage& storage, int64_t n);
  bool HoldsWhatWasRead();
  absl::Status MakeRows(const Storage& storage, int64_t n);
  template <typename T>
  absl::StatusOr<absl::Span<T>> OwnLeaf(absl::string_view key, int64_t n,
                                        TensorDict* out);
  absl::Status WriteOrigins(const SamplePlan& plan,
                            absl::Span<const Slot> slots, TensorDict* out);

  const Options options_;
  TensorDictSpec spec_;  // Of the batch; empty until there are rows.
  UnitTransform::Reads reads_;
  TensorDict apart_;
  std::vector<TensorDict> context_;
  // Of the batch, and of it with the leaves that a sample adds.
  SpecTree rows_tree_{TensorDictSpec()};
  SpecTree sample_tree_{TensorDictSpec()};
  TensorDict rows_;  // The rows' leaves of the batch that is being read.
  // In the order of spec_: those of rows_, and of the batch as it was given,
  // with the added ones behind.
  std::vector<const Tensor*> row_leaves_;
  std::vector<const Tensor*> given_;
  std::vector<Slot> slots_;
  std::vector<ByteExtent> taken_;  // Leaves that were looked at so far.
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLE_READER_H_
