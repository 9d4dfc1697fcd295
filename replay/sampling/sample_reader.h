// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_SAMPLE_READER_H_
#define RILL_REPLAY_SAMPLING_SAMPLE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/replay/sampling/device_gather.h"
#include "rill/replay/sampling/fused_gather.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/row_reader.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/rows/gather_plan.h"
#include "rill/transforms/unit_transform.h"

namespace rill::replay_internal {

// Turns a plan into a batch: one gather, the leaves that say where the rows
// came from, and what the unit's transform makes of it. The batch's dimension
// is named "time" where that marks its pieces, else "rows".
//
// Thread-safety: thread-compatible.
// Cost: O(rows + leaves^2). Without a unit's transform allocates nothing where
//   `out` fits. It then holds just the leaves of a sample of this size, each
//   writable, in the right memory, in no mapped file, and no two over the same
//   bytes. Stored leaves may have rows at any distance, those that are added
//   are contiguous. With a transform, each leaf that it asks for is read once,
//   and no other.
// Device/Stream: of a storage on a device all leaves lie there. Read enqueues
//   on the device's current stream, the same one each time, and the host goes
//   on; what the work needs is the reader's until its end (EndRead). Lists that
//   grow keep what they had until then.
class SampleReader {
 public:
  struct Options {
    bool is_weighted = false;
    // Memory of new leaves, where the rows lie in host memory.
    Tensor::Options memory = {};
    // Null: a row's leaves are the batch's. Not owned.
    const UnitTransform* unit = nullptr;
    std::string sampler = "";  // Sampler::name(), for errors.
  };

  explicit SampleReader(const Options& options) : options_(options) {}

  // The spec of what Read makes of rows with this spec. INVALID_ARGUMENT where
  // the rows have one of the keys that it adds; errors of the unit's transform.
  absl::StatusOr<TensorDictSpec> SampleSpec(const TensorDictSpec& rows) const;

  // OUT_OF_RANGE where a row was cleared since the plan. With an error `out` is
  // unspecified, and on a device the caller waits for the stream.
  absl::Status Read(const RowReader& storage, const SamplePlan& plan,
                    TensorDict* out);
  // Tensors that work of an earlier batch may use, to be kept by the next Read
  // of rows on a device until its end.
  std::vector<Tensor>* kept() { return &kept_; }
  // `end` is behind all work of the Read and of what reads the same tensors;
  // null: that has ended. Nothing to do for rows in host memory.
  void EndRead(std::shared_ptr<const Event> end) {
    if (uploads_ != nullptr) uploads_->End(std::move(end));
  }

  // From here on each list beside the batch's rows has so many `rows`. Those of
  // its plan, which are at most as many, are first; nobody reads the others.
  // With `has_mask` each batch has a mask, and the batches are made in the same
  // tensors. For rows on a device.
  void FixLists(std::vector<int64_t> rows, bool has_mask);
  // From here on what a Read enqueues behind its uploads is one graph, which
  // the next Read captures and all launch. They are reads of as many rows, into
  // the tensors of the first, through one chain, with lists that are fixed and
  // a unit that leaves its launches (UnitTransform::Traits). For rows on a
  // device of a storage that shows its tables; after a Read, the work of which
  // has ended. FAILED_PRECONDITION of a Read whose rows lie elsewhere since.
  void MakeGraph();

  // From the next Read on the transforms of `chain` are done on the way; null:
  // none. For storages that CanFuse.
  void SetChain(std::shared_ptr<const GatherPlan> chain);
  // True if a read of these rows can do a chain of transforms on the way. It
  // can where rows lie in host memory one by one (StorageTraits::has_blocks),
  // have one shape each, and the unit makes each draw of itself alone. On a
  // device it can where the storage shows its table (DeviceGather::CanMap).
  static bool CanFuse(const RowReader& storage, const UnitTransform* unit,
                      const TensorDictSpec& rows, const GatherPlan& plan) {
    if (!storage.device().is_cpu()) {
      return storage.traits().shows_tables &&
             DeviceGather::CanMap(plan, rows, unit);
    }
    return (unit == nullptr || unit->traits().is_drawwise) &&
           !storage.traits().ragged_leaves && !storage.traits().has_blocks;
  }

 private:
  // A leaf of the rows on a device, and what DeviceGather makes of it.
  struct Mapped {
    size_t leaf = 0;
    DeviceGather::Read read;
  };
  // The leaves that go from one list of rows into the batch.
  struct Gather {
    // Leaves of the rows, and the leaves of batch_ that take them.
    std::vector<size_t> leaves;
    std::vector<size_t> into;
    std::vector<BoundLeaf> places;  // Those, of the batch that is being read.
    // The leaves that a batch holds in another shape than the rows do.
    std::vector<std::string> keys;
    // On a device: the leaves of the rows that the chain maps on the way.
    std::vector<Mapped> mapped;
  };
  // The leaves of a list of rows that the arithmetic reads apart.
  struct Apart {
    std::vector<size_t> leaves;  // Of the rows.
    BoundRows room;
    std::vector<BoundLeaf> places;  // Those, of the list that is being read.
  };

  // A leaf that is made of stored rows, one behind the other.
  struct JoinedGather {
    std::optional<size_t> into;  // Of the batch; none: it is mapped alone.
    std::vector<size_t> parts;   // Leaves of the rows.
    std::vector<Mapped> mapped;  // All parts of one output after the other.
    // One a part, for the batch that is being read.
    std::vector<BoundLeaf> places;
    std::vector<std::vector<Slot>> slots;
  };

  absl::Status Learn(const RowReader& storage);
  absl::Status LearnChain(const RowReader& storage, const TensorDictSpec& rows,
                          TensorDictSpec* batch);
  absl::Status LearnJoined(Device device, const TensorDictSpec& rows,
                           const TensorDictSpec& batch);
  // The arithmetic of a batch that is read at once.
  const UnitTransform& work_unit() const {
    return part_unit_ != nullptr ? *part_unit_ : *options_.unit;
  }
  absl::StatusOr<Apart> ApartOf(absl::Span<const std::string> keys,
                                const TensorDictSpec& rows,
                                const Tensor::Options& memory) const;
  void MapJoined(const TensorDictSpec& batch);
  // Leaves of the rows, or of their unit, that the chain reads where they lie.
  absl::StatusOr<std::vector<FusedGather::Shown>> FindShown(
      const RowReader& storage, const TensorDictSpec& rows);
  // The leaves of a batch, and those that a sample adds.
  std::vector<BoundRows::Leaf> LeavesOf(const TensorDictSpec& batch) const;
  Gather GatherOf(absl::Span<const std::string> keys,
                  const TensorDictSpec& rows,
                  const TensorDictSpec& batch) const;
  // Brings `out` to the leaves of a sample of n rows, which are batch_ then.
  absl::Status BindBatch(int64_t n, TensorDict* out);
  // On a device: the leaves that BindBatch drops are kept.
  absl::Status BindBatchAndKeep(int64_t n, TensorDict* out);
  // On a device the read is noted, for ReadNoted: what it names stays.
  absl::Status ReadPlaces(const RowReader& storage,
                          absl::Span<const Slot> slots,
                          absl::Span<const size_t> leaves,
                          absl::Span<const BoundLeaf> places);
  absl::Status ReadGather(const RowReader& storage,
                          absl::Span<const Slot> slots, Gather* gather,
                          TensorDict* out);
  absl::Status ReadApart(const RowReader& storage, absl::Span<const Slot> slots,
                         Apart* apart, TensorDict* out);
  absl::Status ReadForUnit(const RowReader& storage,
                           absl::Span<const Slot> slots, const SamplePlan& plan,
                           TensorDict* out);
  // On a device.
  absl::Status ReadJoined(const RowReader& storage, const SamplePlan& plan);
  void NoteMapped(absl::Span<const Slot> slots, Mapped* mapped);
  // `leaves_launches`: the unit's are still to come.
  absl::Status ReadNoted(const RowReader& storage, const TensorDict& batch,
                         bool leaves_launches = false);
  // A list that FixLists has fixed, filled up with a row of the batch.
  absl::Span<const Slot> FixedList(size_t list, absl::Span<const Slot> slots,
                                   Slot filler);
  absl::Status RunUnit(const SamplePlan& plan, TensorDict* out);
  // Behind what the unit has sent.
  absl::Status EnqueueMade(Device device, const TensorDict& batch);
  // The rows of the plan with what the unit makes of them, without origins.
  absl::Status ReadRows(const RowReader& storage, absl::Span<const Slot> slots,
                        const SamplePlan& plan, TensorDict* out);
  // The same through the chain, a few draws at a time.
  absl::Status ReadFused(const RowReader& storage, absl::Span<const Slot> slots,
                         const SamplePlan& plan);
  absl::Span<const Slot> SlotsOf(const SamplePlan& plan);
  // Sets the name of the one dimension, where a sample has none.
  absl::Status NameRows(TensorDict* out) const;
  absl::Status WriteOrigins(const SamplePlan& plan,
                            absl::Span<const Slot> slots, TensorDict* out);
  absl::Status WriteMask(const SamplePlan& plan, int64_t n, TensorDict* out);
  // Memory of the host to write `count` values of a leaf to, which lie at `to`:
  // there, or on their way there.
  template <typename T>
  absl::StatusOr<T*> RoomFor(std::byte* to, int64_t count);

  const Options options_;
  // All members down to fused_ are learnt with the rows.
  bool is_learned_ = false;
  bool is_ragged_ = false;
  UnitTransform::Reads reads_;
  bool has_mask_ = false;  // The rows have a leaf of that name.
  // The leaves of the rows, or of their unit, with those behind that a sample
  // adds; of ragged rows the latter alone.
  BoundRows batch_;
  std::vector<std::string> batch_keys_;
  std::vector<std::string> others_;  // Leaves of earlier batches beside those.
  size_t num_rows_leaves_ = 0;
  Gather rows_;
  std::vector<Gather> context_gathers_;
  std::vector<Apart> context_aparts_;  // None of ragged rows.
  Apart rows_apart_;                   // Of rows on a device.
  Tensor::Options memory_;             // Of all leaves there.
  std::shared_ptr<const GatherPlan> chain_;
  std::optional<FusedGather> fused_;             // Of chain_, if there is one,
  std::unique_ptr<DeviceGather> device_gather_;  // and on a device.
  // With a unit and a chain: reads some draws, which the chain goes on from,
  // but for leaves of joined_.
  std::unique_ptr<SampleReader> part_;
  std::unique_ptr<UnitTransform> part_unit_;  // Null: options_.unit.
  std::vector<UnitTransform::Joined> joined_;
  std::vector<JoinedGather> joined_gathers_;  // On a device, of joined_.
  std::vector<Slot> joined_slots_;
  std::vector<RowReader::ListRead> noted_;
  std::vector<DeviceGather::Read*> noted_maps_;
  int64_t part_bytes_ = 0;  // Of a row of a part.
  SamplePlan part_plan_;
  TensorDict part_rows_;
  TensorDict apart_;
  std::vector<TensorDict> context_;
  std::vector<Slot> slots_;
  std::vector<Tensor> kept_;
  std::vector<Tensor> before_;  // Leaves of the batch that is bound.
  Tensor mask_;                 // Of the batch before, to be written again.
  std::unique_ptr<ReadGraph> graph_;  // Of MakeGraph.
  // Set by FixLists.
  std::optional<std::vector<int64_t>> rows_of_lists_;
  std::vector<std::vector<Slot>> fixed_lists_;
  bool fixes_mask_ = false;
  // Of rows on a device; behind all that enqueued work uses, so that it is
  // waited for before that goes.
  std::unique_ptr<StreamUploads> uploads_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_SAMPLE_READER_H_
