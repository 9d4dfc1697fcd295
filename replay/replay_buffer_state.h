// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_REPLAY_BUFFER_STATE_H_
#define RILL_REPLAY_REPLAY_BUFFER_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_reader.h"
#include "rill/replay/write_counter.h"
#include "rill/transforms/compose.h"

namespace rill {

// ReplayBuffer's body. Everything that calls change is under one mutex; the
// storage and the sampler lock for themselves, and are locked after it.
struct ReplayBuffer::State {
  State(Options options, std::unique_ptr<Compose> transforms);
  ~State();

  // The storage's events reach the sampler and `writes` from here on.
  absl::Status Attach();

  // The transforms can work on samples of rows with this spec; looked at once.
  absl::Status CheckForward(const TensorDictSpec& rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::StatusOr<TensorDict> BeforeWrite(const TensorDict& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::StatusOr<ExtendResult> CheckAndWrite(const TensorDict& rows,
                                             const WriteInfo& info)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status SampleInto(int64_t batch_size, TensorDict* out);
  absl::Status DrawAndRead(int64_t batch_size, TensorDict* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status AfterRead(TensorDict* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status Place(TensorDict* out) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  absl::Status SaveTo(const std::string& directory) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const std::shared_ptr<Storage> storage;
  const std::unique_ptr<Sampler> sampler;
  const std::unique_ptr<UnitTransform> unit_transform;
  const int64_t batch_size;
  const bool pin_memory;
  const std::optional<Device> device;
  const Device pin_for;
  replay_internal::WriteCounter writes;
  bool is_sampler_attached = false;
  bool is_counter_attached = false;

  mutable absl::Mutex mutex;
  const std::unique_ptr<Compose> transforms ABSL_PT_GUARDED_BY(mutex);
  bool is_forward_checked ABSL_GUARDED_BY(mutex) = false;
  uint64_t seed ABSL_GUARDED_BY(mutex);
  uint64_t batch_number ABSL_GUARDED_BY(mutex) = 0;
  // Kept so that steady sampling allocates nothing.
  SamplePlan plan ABSL_GUARDED_BY(mutex);
  replay_internal::SampleReader reader ABSL_GUARDED_BY(mutex);
};

}  // namespace rill

#endif  // RILL_REPLAY_REPLAY_BUFFER_STATE_H_
