// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ENSEMBLE_REPLAY_BUFFER_ENSEMBLE_STATE_H_
#define RILL_REPLAY_ENSEMBLE_REPLAY_BUFFER_ENSEMBLE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"
#include "rill/replay/ensemble/replay_buffer_ensemble.h"
#include "rill/transforms/compose.h"

namespace rill {

// ReplayBufferEnsemble's body.
struct ReplayBufferEnsemble::State {
  // The items that one member has drawn for a batch that is not whole yet; 0:
  // none.
  struct Held {
    int64_t items = 0;
    int64_t clears = 0;  // Of the member, before it drew.
    TensorDict rows;
  };

  State(Options options, std::unique_ptr<Compose> all_transforms,
        TensorDict initial_transform_state)
      : members(std::move(options.members)),
        batch_size(options.batch_size),
        stacked(options.stacked),
        buffers_sampled(options.buffers_sampled),
        transforms(std::move(all_transforms)),
        transform_state(std::move(initial_transform_state)),
        seed(options.seed),
        carry(members.size()),
        items(members.size()),
        held(members.size()) {}

  // That the state is compared by.
  OptionValues ComparedOptions() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  std::string Label(size_t i) const;
  bool has_equal_parts() const { return stacked || buffers_sampled > 0; }

  // Sum 1. INVALID_ARGUMENT as SetShares, said by `caller`.
  absl::StatusOr<std::vector<double>> Normalised(
      absl::string_view caller, absl::Span<const double> shares) const;

  absl::Status SampleInto(int64_t batch_size, TensorDict* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // How many items of the next batch each member gives; `owed` is carry then.
  absl::Status Split(int64_t batch_size, std::vector<double>* owed,
                     std::vector<int64_t>* counts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::vector<size_t> DrawMembers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status DrawParts(int64_t batch_size, absl::Span<const int64_t> counts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status ApplyTransforms(TensorDict* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Whether they can work on the samples of each member, once all know theirs.
  absl::Status CheckTransforms() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const std::vector<Member> members;
  const int64_t batch_size;
  const bool stacked;
  const int64_t buffers_sampled;

  mutable absl::Mutex mutex;
  const std::unique_ptr<Compose> transforms;
  TensorDict transform_state ABSL_GUARDED_BY(mutex);
  // By CheckTransforms; of each member its samples' spec, empty until it has
  // one.
  bool is_checked ABSL_GUARDED_BY(mutex) = false;
  std::vector<TensorDictSpec> specs ABSL_GUARDED_BY(mutex);
  uint64_t seed ABSL_GUARDED_BY(mutex);
  std::vector<double> shares ABSL_GUARDED_BY(mutex);
  std::vector<double> carry ABSL_GUARDED_BY(mutex);
  std::vector<int64_t> items ABSL_GUARDED_BY(mutex);
  int64_t batches ABSL_GUARDED_BY(mutex) = 0;
  std::vector<Held> held ABSL_GUARDED_BY(mutex);
};

}  // namespace rill

#endif  // RILL_REPLAY_ENSEMBLE_REPLAY_BUFFER_ENSEMBLE_STATE_H_
