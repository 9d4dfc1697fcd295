// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_TRANSFORM_STAGE_H_
#define RILL_REPLAY_SAMPLING_TRANSFORM_STAGE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/rows/gather_plan.h"

namespace rill::replay_internal {

// All that a replay buffer does with its transforms: Forward on samples,
// Inverse on writes, their specs, their state.
//
// Every batch number from 0 (or LoadState's) on calls Forward or Skip, once.
// Where no transform has a state, batches and writes go through them at once,
// without a lock. Else a call waits until all lower numbers have called.
//
// The state changes all or nothing: a batch or a write that fails leaves it as
// it was.
//
// Thread-safety: Forward, Skip, Inverse, TakeBack, CutLanes and CheckRows are
//   thread-safe; the others are called while no batch or write is under way.
//   One lock; only `before_waiting`, transforms with a state and `finish` are
//   called with it held.
// Cost: that of the transforms.
class TransformStage {
 public:
  struct Options {
    std::vector<std::unique_ptr<BatchTransform>> transforms = {};
    // The spec of a sample of rows with this spec, before the transforms.
    // Required.
    std::function<absl::StatusOr<TensorDictSpec>(const TensorDictSpec& rows)>
        sample_spec = nullptr;
    // The reader of samples of rows with this spec can do the plan on the way.
    // Null: it can do none.
    std::function<bool(const TensorDictSpec& rows, const GatherPlan& plan)>
        can_fuse = nullptr;
    // Called by a batch or a write that is about to wait for earlier batches,
    // so that somebody makes them; null: they come by themselves.
    std::function<void()> before_waiting = nullptr;
  };

  // INVALID_ARGUMENT names the place of a null transform.
  static absl::StatusOr<std::unique_ptr<TransformStage>> Create(
      Options options);

  // Has no transform: Forward and Inverse change nothing.
  bool is_empty() const { return is_empty_; }

  // The transforms can work on samples of rows with this spec. An empty spec
  // says nothing and passes. `is_stored`: it is the storage's, which does not
  // change, and is looked at once. INVALID_ARGUMENT names the transform.
  absl::Status CheckRows(const TensorDictSpec& rows, bool is_stored);
  // The spec of samples of rows with this spec, behind the transforms; those
  // with an empty spec have an empty one.
  absl::StatusOr<TensorDictSpec> SampleSpec(const TensorDictSpec& rows) const;
  // CheckRows has passed the storage's spec.
  bool is_checked() const { return is_checked_; }

  // The transforms as a part of the gather, where they can be that and
  // CheckRows has passed the storage's spec; else null. A batch that was
  // gathered so does not call Forward.
  std::shared_ptr<const GatherPlan> chain() const;

  // Batch `number` through the transforms. Leaves that say where its rows came
  // from (sample_origins.h) are put back where one dropped them. `finish` then
  // ends the batch, and may move from it; where it fails the batch has taught
  // the transforms nothing. With an error `batch` is to be dropped.
  absl::Status Forward(uint64_t number, TensorDict* batch,
                       absl::FunctionRef<absl::Status()> finish);
  // Batch `number` has failed before.
  void Skip(uint64_t number);

  // The change by an Inverse, for TakeBack.
  struct Undo {
    TensorDict before;
    uint64_t change = 0;
  };
  // A write's rows through the inverses, last transform first; their lane 0 is
  // lane `first_lane` of the storage. Where the transforms have a state, waits
  // for all batches below `drawn`: what the write teaches comes after what they
  // teach.
  absl::StatusOr<Undo> Inverse(uint64_t drawn, TensorDict* rows,
                               int64_t first_lane = 0);
  // The write has failed: its inverse has not happened, unless batches or
  // writes have gone on from it.
  void TakeBack(const Undo& undo);
  // Cut and Clear of the buffer, for transforms that hold rows
  // (lane_transform.h). The states of others stay.
  absl::Status CutLanes(LaneRange lanes);
  absl::Status Clear();

  // Adds `transform` at `place`, nullopt: behind the others. `rows` is the
  // storage's spec, `next` the number of the batch that is drawn next.
  // INVALID_ARGUMENT, and nothing has changed, where it is null, the place is
  // none, or the transforms could not work on such rows.
  absl::Status Insert(std::optional<int64_t> place,
                      std::unique_ptr<BatchTransform> transform,
                      const TensorDictSpec& rows, uint64_t next);

  // For checkpoints: the state, and the number of the batch that is drawn next
  // after a load. That of transform i is `<i>`; without any there is no type.
  // FAILED_PRECONDITION, unchanged, where other transforms have saved the
  // state.
  absl::StatusOr<TensorDict> SaveState() const;
  absl::Status LoadState(const TensorDict& state, uint64_t next);
  std::vector<std::string> Names() const;
  // As "transforms.0", ...
  void AddOptions(OptionValues* values) const;

 private:
  TransformStage(Options options, std::unique_ptr<Compose> transforms,
                 TensorDict state);

  // Until all batches below `number` have called Forward or Skip.
  void AwaitBatchesBelow(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `state` becomes what it is after the batch.
  absl::Status Run(TensorDict* batch, TensorDict* state,
                   absl::FunctionRef<absl::Status()> finish) const;
  // `change` of the state; with an error there is none.
  absl::Status ChangeState(absl::FunctionRef<absl::Status(TensorDict*)> change);
  // From here on `rows` is the storage's spec, and `chain` that of samples.
  void Adopt(const TensorDictSpec& rows,
             std::shared_ptr<const GatherPlan> chain)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The chain of samples of stored rows with this spec; null where there is
  // none.
  absl::StatusOr<std::shared_ptr<const GatherPlan>> MakeChain(
      const TensorDictSpec& rows) const;

  const std::function<absl::StatusOr<TensorDictSpec>(const TensorDictSpec&)>
      sample_spec_;
  const std::function<bool(const TensorDictSpec&, const GatherPlan&)> can_fuse_;
  const std::function<void()> before_waiting_;
  // These change in Insert, with no batch or write under way.
  const std::unique_ptr<Compose> transforms_;
  bool is_empty_;
  bool is_stateful_;
  std::atomic<bool> is_checked_ = false;
  // Bit i: kOrigins[i] is a leaf of the rows, and so none that a sample adds.
  std::atomic<uint32_t> stored_origins_ = 0;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const GatherPlan> chain_ ABSL_GUARDED_BY(mutex_);
  TensorDict state_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // The batch to call now.
  // Changes of the state: Forwards, Inverses, Inserts.
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_TRANSFORM_STAGE_H_
