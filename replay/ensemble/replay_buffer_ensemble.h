// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ENSEMBLE_REPLAY_BUFFER_ENSEMBLE_H_
#define RILL_REPLAY_ENSEMBLE_REPLAY_BUFFER_ENSEMBLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Batches of several replay buffers, each with its own storage, sampler,
// transforms and prefetch. Writes go to the members.
//
// A batch is the members' samples one behind the other, in the members' order,
// with `buffer_ids` int64 [B] beside `index` and `index_generation`. Where any
// member has them it also has `priority_weight` and `collector/mask` (1 and
// true in the rows of the others). With `stacked` it is [members, B / members],
// as TorchRL's. All other leaves must be the same in all members: their
// transforms see to that. A sampler of slices wants numbers that its length
// divides: choose shares for which that is so. Where a sampler gives other
// numbers of rows than it was asked for, so does the batch.
//
// Shares are exact, not drawn. A share that is a whole number of items of a
// batch is that in every batch. Others are never an item off over all batches
// together. So the split depends on nothing but the order of calls.
//
// With an error of one member (too few rows) no batch number is used up and
// nothing is lost. Items that the others had drawn go into the next batch that
// takes as many items of them, before they draw again. They do not where their
// rows were cleared or loaded over since (ReplayBuffer::clears). An error later
// (leaves that do not fit, transforms) belongs to its batch.
//
// A member's `prefetch` works where the batch takes just its Options::
// batch_size items: give it batch_size = share x B.
//
// Thread-safety: thread-safe; samples take turns, also where a member waits for
//   its rate limiter. Transforms are called one at a time.
// Reproducible: the same members, seed and order of calls give the same
//   batches.
// Cost: that of the members' samples and one copy of the batch. SampleInto with
//   a batch that fits allocates no tensor for it where members need not be
//   filled up with weights or masks.
//
// Example (ReplayBufferEnsembleTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto ensemble,
//       ReplayBufferEnsemble::Create(
//           {.members = {{.buffer = walking, .share = 0.75, .name = "walk"},
//                        {.buffer = running, .share = 0.25, .name = "run"}},
//            .batch_size = 32}));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, ensemble->Sample());
//   RILL_RETURN_IF_ERROR(ensemble->UpdatePriorities(batch, priorities));
class ReplayBufferEnsemble {
 public:
  struct Member {
    std::shared_ptr<ReplayBuffer> buffer = nullptr;  // Required.
    double share = 1;       // >= 0 and finite; of the sum of all, which is > 0.
    std::string name = "";  // In errors, beside its number.
  };
  struct Options {
    std::vector<Member> members = {};  // At least one.
    int64_t batch_size = 0;            // Of Sample() without a number; 0: none.
    // Equal parts, of all members or of `buffers_sampled`, on a dimension of
    // their own.
    bool stacked = false;
    // > 0: each batch is equal parts of so many members, which are drawn
    // without replacement by their shares. 0: all members, by their shares.
    int64_t buffers_sampled = 0;
    // Forward in order on batches, after what the members' own have done.
    std::vector<std::unique_ptr<BatchTransform>> transforms = {};
    uint64_t seed = 0;  // Of the draw of members.
  };
  struct Stats {
    int64_t batches = 0;              // Drawn.
    std::vector<int64_t> items = {};  // Of each member, in them.
    std::vector<double> shares = {};  // Sum 1.
  };

  // INVALID_ARGUMENT names the option, or the member.
  static absl::StatusOr<std::unique_ptr<ReplayBufferEnsemble>> Create(
      Options options);
  ~ReplayBufferEnsemble();

  // A batch of Options::batch_size / of `batch_size` items. Errors of a member
  // name it, the items that it was asked for and its rows. INVALID_ARGUMENT
  // where equal parts do not divide the batch, or leaves differ: names two
  // members and the key.
  absl::StatusOr<TensorDict> Sample();
  absl::StatusOr<TensorDict> Sample(int64_t batch_size);
  // Reuses the tensors of `out` where they fit. With an error the values in
  // `out` are unspecified.
  absl::Status SampleInto(TensorDict* out);
  absl::Status SampleInto(int64_t batch_size, TensorDict* out);

  // New priorities for the rows of a batch, or of some of its rows, each to the
  // member that `buffer_ids` names; one value a row, or one for all. Checks
  // `buffer_ids` and sizes before the first member is updated; an error of a
  // member leaves those before it updated.
  absl::Status UpdatePriorities(const TensorDict& batch,
                                absl::Span<const float> priorities);

  // From the next batch on; as Member::share, one a member. INVALID_ARGUMENT
  // where there are others, or fewer of them > 0 than Options::buffers_sampled.
  // Members keep what they are owed of earlier batches (at most one item each).
  absl::Status SetShares(absl::Span<const double> shares);

  Stats GetStats() const;
  int64_t size() const;  // Rows of all members.
  int64_t num_members() const;
  ReplayBuffer& member(int64_t i) const;

  // The state that the next batches depend on beside the members: shares, the
  // items due to members, the batch number, the seed, the transforms' state.
  // The members are saved by themselves (ReplayBuffer::Save). LoadState takes
  // the state of an ensemble of as many members, else is FAILED_PRECONDITION
  // and changes nothing. Items held after an error are dropped.
  //
  // Shares (Member::share, as given), `stacked`, `buffers_sampled` and the
  // options of transforms are compared as ReplayBuffer::Open compares its own.
  // A difference is FAILED_PRECONDITION with both values, or taken over, as
  // accept_options and changed_options say. Shares of SetShares are state.
  absl::StatusOr<TensorDict> SaveState() const;
  absl::Status LoadState(const TensorDict& state) {
    return LoadState(state, ReplayBuffer::OpenOptions());
  }
  absl::Status LoadState(const TensorDict& state,
                         const ReplayBuffer::OpenOptions& options);

 private:
  struct State;
  explicit ReplayBufferEnsemble(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rill

#endif  // RILL_REPLAY_ENSEMBLE_REPLAY_BUFFER_ENSEMBLE_H_
