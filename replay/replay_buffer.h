// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_REPLAY_BUFFER_H_
#define RILL_REPLAY_REPLAY_BUFFER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/flow/sink.h"
#include "rill/replay/buffer_options.h"  // IWYU pragma: export
#include "rill/replay/buffer_stats.h"    // IWYU pragma: export
#include "rill/replay/open_options.h"    // IWYU pragma: export
#include "rill/replay/row_patch.h"       // IWYU pragma: export
#include "rill/replay/stored_trajectory.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/live_rows/live_rows.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

class RunCheckpoint;

// Experience replay: a storage that remembers, a sampler that chooses,
// transforms on the way in and out. Is a Sink, so a collector fills it.
//
// The way of a sample: draw, one gather, the arithmetic of the sampler's unit,
// the transforms in order, then device or pin. Pinning is the last step
// whatever the transforms did.
//
// A sample is [B] and holds the rows' leaves, and `index` int64 [B] (slots),
// `index_generation` int64 [B] and, from a weighted sampler, `priority_weight`
// float32 [B]. Transforms see these three; where one drops them from a batch
// that is still [B] they are put back. A sampler whose picks have several rows
// gives all of them, [rows], with the weight of their pick, and
// `collector/mask` bool [rows] where some only pad.
//
// Order: a batch is drawn at a defined point in the caller's order. With
// `prefetch` N, batch k + N is drawn inside the call that hands out batch k;
// only gather and transforms run in the background, transforms in the order of
// the batches. A write that would overwrite a row of a batch that was drawn and
// is not gathered waits for that gather; other writes go on beside samples.
// An error belongs to its batch and costs no other. An exception of a sampler,
// writer, transform or function is such an error (base/catch_exceptions.h).
//
// Thread-safety: thread-safe. Batches are numbered in the order of their draws;
//   a draw that fails uses up no number. Samples and writes go side by side,
//   Save and Clear alone. Transforms without a state are called from all
//   threads at once, those with one one at a time, in the order of batches;
//   they must not call the buffer, nor write to its storage.
// Reproducible: the same seed, order of calls and N give the same batches, for
//   any number of threads. Batches of N = 0 and N > 0 agree where nothing is
//   written or updated between samples. Where another buffer writes to the same
//   storage a batch may hold rows that are newer than its draw.
// Device/Stream: rows of a storage on a device are gathered and worked on
//   there, on a stream of the buffer's. No call but Sample, SampleInto and
//   CaptureSample waits for it. The caller's work on tensors that go into
//   SampleInto has ended.
// Cost: SampleInto with no transforms, no device and a batch that fits
//   allocates nothing where the sampler does not. With `prefetch` the tensors
//   of `out` go to a batch to come: what shares them changes later.
//
// Example (ReplayBufferTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto storage,
//                         DenseStorage::Create({.capacity = 1000}));
//   RILL_ASSIGN_OR_RETURN(
//       auto buffer,
//       ReplayBuffer::Create({.storage = std::move(storage),
//                             .sampler = MakeUniformSampler(),
//                             .batch_size = 32}));
//   RILL_RETURN_IF_ERROR(buffer->Extend(steps).status());
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
class ReplayBuffer : public Sink {
 public:
  using Options = BufferOptions;
  using Stats = BufferStats;
  using Rates = BufferStats::Rates;
  using OpenOptions = BufferOpenOptions;

  // INVALID_ARGUMENT names the option, the parts that do not fit each other
  // (part_fit.h), or the transform that cannot work on the storage's rows.
  // Rows are checked here, or before the first write where the storage has no
  // spec yet. FAILED_PRECONDITION where `device` or `pin_for` has no backend in
  // this build.
  static absl::StatusOr<std::unique_ptr<ReplayBuffer>> Create(Options options);
  // Makes those checks of Create that need no more than the options, with
  // nothing taken or attached. Only Create knows whether writer and transforms
  // take the storage.
  static absl::Status CheckOptions(const Options& options);
  ~ReplayBuffer() override;

  // Appends [lanes, time], or [time] to a storage of one lane. All or nothing;
  // errors as Storage::Extend. An open trajectory is cut before, as by Cut,
  // where the batch does not follow on it. So it is where the batch is another
  // source's (WriteInfo::source and producer), or one of its source is missing
  // (WriteInfo::sequence). That cut stays where the batch is refused.
  // Hand-written rows without any number count as one source's.
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info = {});
  // The same, and which rows they are. `rows` becomes a draw of weight 1 for
  // each row that was written, with its slot and generation, lane after lane,
  // oldest first; UpdatePriorities takes them. Rows that a batch longer than
  // its lane drops have none. A writer that puts rows in the places of others
  // names them in the order in which it wrote them. Empty with an error. Costs
  // nothing where it is not asked; null: as above.
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info,
                                      std::vector<Draw>* rows);
  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override;
  // The newest row of each lane, where it does not end a trajectory, gets
  // `next/truncated` and `next/done`, in place; a flag that is not stored is
  // left out. So do rows of these lanes that a transform holds back
  // (MultiStep). Batches that were drawn ahead keep what they have.
  // OUT_OF_RANGE where the storage does not have the lanes. FAILED_PRECONDITION
  // where the sampler needs the order of rows and these have neither
  // `next/truncated` nor a trajectory id.
  absl::Status Cut(int64_t producer, LaneRange lanes) override;
  absl::Status Flush() override;
  // Overwrites live rows in place, as Storage::WriteAt; not through the
  // transforms.
  absl::Status WriteAt(absl::Span<const Slot> slots, const TensorDict& rows);
  using PatchOptions = rill::PatchOptions;
  using PatchResult = rill::PatchResult;
  // Overwrites leaves of rows that were sampled, those that are still there:
  // `patch` is [n] with `index` and `index_generation` of a sample, and some of
  // the stored leaves. Rows stay the ones that were drawn, so that priorities
  // still reach them. Where a row is named several times the highest version
  // counts, the last of equal ones; the others are rejected (`version_key`), or
  // overwritten. All or nothing; errors as WriteAt, and NOT_FOUND where a leaf
  // is missing.
  absl::StatusOr<PatchResult> UpdateIfPresent(const TensorDict& patch,
                                              const PatchOptions& options = {});

  // Calls `visit` with each trajectory, lane after lane, oldest first, until it
  // returns false or an error, which is the result then. It visits those that
  // are there when the call begins. One that is overwritten meanwhile is left
  // out. One that loses steps or grows is given as it is when its visit comes.
  // Steps are as they are stored: not through the transforms. `visit` may write
  // to the buffer. NOT_FOUND where a key of the filter is not stored.
  // Cost: O(rows) at the start, then that of reading; writes go on beside it.
  absl::Status Iterate(
      const TrajectoryFilter& filter,
      absl::FunctionRef<absl::StatusOr<bool>(const StoredTrajectory&)> visit);
  // The trajectories for which `where` says so, `limit` at most.
  absl::StatusOr<std::vector<StoredTrajectory>> Query(
      const TrajectoryFilter& filter,
      absl::FunctionRef<absl::StatusOr<bool>(const StoredTrajectory&)> where,
      int64_t limit = std::numeric_limits<int64_t>::max());

  // All live rows, oldest first (storage/live_rows/live_rows.h), as they are
  // stored: not through the transforms. They are of one moment: this buffer's
  // writes and samples wait meanwhile, as for a Save; writes of other buffers
  // do not.
  absl::StatusOr<TensorDict> ReadAll(
      LiveRowsShape shape = LiveRowsShape::kLanesTime);

  // Adds a transform behind the others / at `place` in [0, number of them]. It
  // works on what is written and drawn from here on: batches that were drawn
  // ahead have gone through the others. INVALID_ARGUMENT, and nothing has
  // changed, where it is null, the place is none, or the transforms could not
  // work on the stored rows then.
  absl::Status AppendTransform(std::unique_ptr<BatchTransform> transform);
  absl::Status InsertTransform(int64_t place,
                               std::unique_ptr<BatchTransform> transform);

  // Forgets all rows, those that transforms hold back, the batches that were
  // made ahead, and what the rate limiter has counted.
  absl::Status Clear();
  // Calls that wait for the rate limiter, now or later, are CANCELLED; so are
  // those of other buffers that share it.
  void Close();

  // A batch of Options::batch_size / of `batch_size` items. FAILED_PRECONDITION
  // where rows are too few. A number other than Options::batch_size wins over
  // it, with a warning in Abseil's log, one a buffer: it draws a batch of its
  // own, after those that were drawn ahead.
  absl::StatusOr<TensorDict> Sample();
  absl::StatusOr<TensorDict> Sample(int64_t batch_size);
  // Reuses the tensors of `out`, where they fit: no allocation then, unless a
  // transform makes one. Without a unit's arithmetic, rows of stored leaves may
  // lie at any distance, as for Storage::Read. With an error the leaves
  // of `out` and their values are unspecified.
  absl::Status SampleInto(TensorDict* out);
  absl::Status SampleInto(int64_t batch_size, TensorDict* out);

  // The leaves of a sample, behind the transforms, and where they lie. Empty
  // until the storage has a spec.
  absl::StatusOr<TensorDictSpec> SampleSpec() const;

  // A batch whose work on a device may be under way: all of it where the rows
  // lie there, else the copy to Options::device.
  struct PendingBatch {
    TensorDict batch;
    // Null: it is all there. Else wait for it before anything reads the batch:
    // Stream::WaitFor(*copied), or copied->Synchronize() on the host.
    std::shared_ptr<const Event> copied;
  };
  // As Sample(), without waiting for that work, which has a stream of its own.
  // The tensors stay alive until `copied`. An error of the work shows where it
  // is waited for, and may be one of those that were queued behind it too.
  absl::StatusOr<PendingBatch> SamplePending();

  // A sample that is drawn again and again into the same tensors on the device
  // of the rows. Its work there, the gather and the transforms, is one CUDA
  // graph. So a batch costs a launch for its row numbers and one for all else.
  // The buffer outlives it.
  // Thread-safety: thread-compatible; other calls of the buffer go beside it.
  class CapturedSample {
   public:
    ~CapturedSample();

    // [B], as of Sample.
    const TensorDict& batch() const;
    // The next batch, which Sample would give. Its values are there behind the
    // work that the thread's current stream has now, and before what that gets
    // later. The host goes on; `end`, unless null, becomes the event of the
    // batch's end, and an error of its work is the event's. After an error the
    // values are unspecified, and the next call goes on.
    // The first call captures. FAILED_PRECONDITION once the storage's rows lie
    // elsewhere (Load), or transforms were added: capture anew. The same of a
    // batch with fewer draws than the captured one, which is lost; samplers
    // that say that they have such (SamplerTraits::may_be_short) cannot be
    // captured.
    absl::Status Replay(std::shared_ptr<const Event>* end = nullptr);

   private:
    friend class ReplayBuffer;
    struct Parts;
    explicit CapturedSample(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
  };
  // Samples once, which makes all memory, and waits for that batch.
  // FAILED_PRECONDITION names the part that no graph can hold. It can hold rows
  // of a DenseStorage on a device, and transforms that are done in the gather.
  // Units are single rows, and slices and sequences that always have as many
  // rows, with n-step returns and stacked frames. Where a unit may pad, each
  // batch has a mask. `prefetch` and another Options::device are refused, and
  // so is a sampler that may end an epoch with a shorter batch: consuming ones,
  // and those without replacement but with drop_last. Else errors as Sample.
  absl::StatusOr<std::unique_ptr<CapturedSample>> CaptureSample();

  // New priorities for the rows of a sample (reads its `index` and
  // `index_generation`); one value a row, or one for all. A sample of sequences
  // also takes one a sequence: it is that of the anchor, the first row behind
  // the burn-in. With one a row, sequences that overlap take the values of each
  // other. Stale rows are ignored.
  absl::Status UpdatePriorities(const TensorDict& batch,
                                absl::Span<const float> priorities);

  // The same of float32 values in a tensor, wherever it lies. A sampler with
  // priorities on the values' device (PrioritizedOptions::device) takes them
  // there, where they are contiguous and one a row. This is enqueued on the
  // current stream (current_stream.h), and the host does not wait. Values are
  // checked there (PrioritizedSelector::RefusedPriorities). Else it waits for
  // the stream.
  absl::Status UpdatePriorities(const TensorDict& batch,
                                const Tensor& priorities);

  // The same, of rows as Extend has named them; one value a row.
  absl::Status UpdatePriorities(absl::Span<const Draw> rows,
                                absl::Span<const float> priorities);

  // Sum and minimum of the priorities of the rows that are there now. None
  // where the sampler has none, or has them on a device.
  std::optional<PriorityMass> priority_mass() const;

  // How many batches of Options::batch_size are left in the epoch of the next
  // batch, that one among them, whatever was drawn ahead. A loop of as many
  // Samples ends with the epoch, where nothing is written meanwhile. 0 where
  // there are no rows. FAILED_PRECONDITION without Options::batch_size, and of
  // samplers that do not go through their items epoch by epoch, as
  // SamplerWithoutReplacement does.
  absl::StatusOr<int64_t> BatchesLeft() const;

  // Sampling and writing read no clock for it. Cost: that of
  // Storage::MemoryUsage, and O(leaves) for each batch that waits.
  Stats GetStats() const;
  int64_t size() const;
  // The rows among these that may still be drawn: all but what a consuming
  // sampler has used up.
  int64_t items() const;
  int64_t capacity() const;
  const Storage& storage() const;
  // Options::batch_size.
  int64_t batch_size() const;
  // Batches drawn so far: the whole of the random state beside the seed.
  uint64_t batch_number() const;
  // How often all rows were given up, because a caller cleared the storage or
  // loaded into it. Batches from before are of rows that are gone.
  int64_t clears() const;

  // Storage, sampler, transforms, seed, batch number and the batches that were
  // made ahead, to a directory that is replaced atomically; checksums over
  // everything: docs/formats/ replay_buffer.md. On any error what was there
  // stays. FAILED_PRECONDITION where something else than a saved buffer is
  // there, or another buffer wrote to the storage meanwhile.
  absl::Status Save(const std::string& directory) const;
  // All of that but the rows, which stay where they are: in the files of the
  // storage, a MemmapStorage, which goes on changing. Open goes back to this
  // position, exactly, as long as none of its rows was overwritten; for any gap
  // Save to another directory. Writes in place since (WriteAt, UpdateIfPresent)
  // are not undone. FAILED_PRECONDITION as Save, of a storage without files,
  // and of a writer that puts rows in the places of others.
  // Cost: that of Storage::Sync and of the sampler's state.
  absl::Status SavePosition(const std::string& directory) const;
  // A buffer of `options` with what Save wrote: its next batches are those that
  // the saved one would have drawn. NOT_FOUND. DATA_LOSS where files are
  // damaged (names file and both checksums), or replaced by another save
  // meanwhile. FAILED_PRECONDITION, naming both sides, for another sampler,
  // transforms, lanes, capacity or spec, or an option of sampler, unit,
  // transforms or writer with another value. FAILED_PRECONDITION also for a
  // storage that holds rows already, so that no other buffer's are lost.
  // Options that a setter or a schedule changed are state: the saved values
  // come back. The seed is the saved one. After an error the storage is empty
  // as before. One without a spec may have learned that of the saved rows, and
  // takes no others then: open another save into another storage.
  //
  // Of a position, `options.storage` has the rows, opened from their directory;
  // those that were appended later are discarded, for good.
  // FAILED_PRECONDITION where it is another storage, was cleared or loaded
  // since, or where rows were overwritten: says how many of how many. With an
  // error its rows are as before; killed on the way, that or the position's.
  static absl::StatusOr<std::unique_ptr<ReplayBuffer>> Open(
      const std::string& directory, Options options);
  static absl::StatusOr<std::unique_ptr<ReplayBuffer>> Open(
      const std::string& directory, Options options,
      const OpenOptions& open_options);

 private:
  struct State;
  friend class RunCheckpoint;  // Saves and opens several as one.
  explicit ReplayBuffer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rill

#endif  // RILL_REPLAY_REPLAY_BUFFER_H_
