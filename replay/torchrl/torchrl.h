// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_TORCHRL_TORCHRL_H_
#define RILL_REPLAY_TORCHRL_TORCHRL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/sampler.h"
#include "rill/storage/row_reader.h"
#include "rill/storage/storage.h"

namespace rill {

// Converts between a save of TorchRL's ReplayBuffer.dumps and a ReplayBuffer.
//
// Example (TorchRlTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(TorchRlReplayBuffer saved,
//                         ReadTorchRlReplayBuffer(directory));
//   RILL_ASSIGN_OR_RETURN(auto buffer, OpenTorchRl(saved, {}));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
//   RILL_ASSIGN_OR_RETURN(saved, ToTorchRl(*buffer));
//   RILL_RETURN_IF_ERROR(WriteTorchRlReplayBuffer(saved, other));

// A buffer of `options` with the saved rows and priorities. Members that
// `options` leave out are taken from there: `storage` (a DenseStorage of its
// size, not mapped), `sampler` (MakeTorchRlSampler; slices left no state, so
// theirs is uniform), `batch_size`. A sampler of one's own gets the priorities
// too. If it is of the saved kind, the saved options (alpha, beta, epsilon,
// drop_last, max_staleness, max_times_sampled) are compared. Another value is
// FAILED_PRECONDITION with both, or taken over, as accept_options and
// changed_options say. The others of `open_options` mean nothing here.
//
// Kept: the rows, as FillFromTorchRl says. Each row's priority, to a float32's
// last bit, and the largest that was given, which new rows get. The rest of an
// epoch, in its order, where the storage has the saved capacity (later epochs
// are in orders of ours).
//
// Not kept: the generator's state, which goes on as TorchRlReplayBuffer has it.
// Generations, and how often a row of a consuming sampler was drawn, count
// anew. So does the learner's version of a sampler by staleness (give it to
// StalenessOptions::current_version).
//
// Errors as FillFromTorchRl, MakeTorchRlSampler and ReplayBuffer::Create;
// DATA_LOSS where a value is no power of a priority; INVALID_ARGUMENT where
// there are fewer values than rows. An error of the options by themselves is
// reported before a row is stored. After any error the storage has no rows, as
// before.
// Cost: O(rows).
absl::StatusOr<std::unique_ptr<ReplayBuffer>> OpenTorchRl(
    const TorchRlReplayBuffer& saved, ReplayBuffer::Options options,
    const ReplayBuffer::OpenOptions& open_options = {});

// Puts the saved rows into an empty storage, oldest first, without the leaf
// `index` of TorchRL's writers (int64, one a row: samples have their own).
// Where lanes have as many slots as there were places, the row of place p is at
// position p. The next write then goes where TorchRL's would, and counts go on,
// but for one that contradicts the cursor. With other capacities the newest
// rows stay. Observers are notified of the rows of earlier rounds too.
//
// FAILED_PRECONDITION where the storage was written to or has other lanes, else
// errors as Storage::Extend, with whatever was stored up to there.
absl::Status FillFromTorchRl(const TorchRlReplayBuffer& saved,
                             Storage* storage);

// A sampler of the saved kind with its options, a consuming one where
// consume_after_n_samples is set. `selector` as in
// MakePrioritizedSampler; null where it is of another kind. INVALID_ARGUMENT
// where ours does not take an option.
absl::StatusOr<std::unique_ptr<Sampler>> MakeTorchRlSampler(
    const TorchRlReplayBuffer& saved, PrioritizedSelector** selector = nullptr);

struct ToTorchRlOptions {
  // Rows of a batch of TorchRL's `sample()`, > 0. 0: the buffer's own.
  // TorchRL's `loads` puts what is saved over the number that its user gave,
  // also where that is none, and then `sample()` fails; so one must be named.
  int64_t batch_size = 0;
  const PrioritizedSelector* selector = nullptr;  // Its priorities go along.
};

// The other way: rows (copied), cursor, counts and the batch size. Where the
// sampler had been without replacement, or else, put that into the result.
// docs/formats/torchrl_replay_buffer.md has the lines that load it in Python.
// INVALID_ARGUMENT where there is no batch size; FAILED_PRECONDITION where no
// row is stored, or lanes are at different steps: TorchRL has one cursor.
// Nobody writes, samples or updates meanwhile.
absl::StatusOr<TorchRlReplayBuffer> ToTorchRl(
    const ReplayBuffer& buffer, const ToTorchRlOptions& options = {});
absl::StatusOr<TorchRlReplayBuffer> ToTorchRl(const RowReader& storage,
                                              const ToTorchRlOptions& options);

}  // namespace rill

#endif  // RILL_REPLAY_TORCHRL_TORCHRL_H_
