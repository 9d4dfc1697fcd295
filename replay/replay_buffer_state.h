// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_REPLAY_BUFFER_STATE_H_
#define RILL_REPLAY_REPLAY_BUFFER_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/doorbell.h"
#include "rill/base/held_directory.h"
#include "rill/base/option_values.h"
#include "rill/formats/manifest.h"
#include "rill/replay/draw_gate.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_job.h"
#include "rill/replay/trajectory_watch.h"
#include "rill/replay/transform_stage.h"
#include "rill/replay/write_path.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// ReplayBuffer's body.
//
// Order of locks: pause_mutex (shared by calls, held alone by Save and Clear),
// the gate's turn, queue_mutex, then the storage's, the sampler's. Nobody waits
// for the turn with queue_mutex held: a write may have it and wait for a
// gather, and workers need queue_mutex to begin one. The transform stage is
// called with none of these held but pause_mutex, and nothing waits for a
// gather inside it: a worker may stand before it with others' gathers behind.
struct ReplayBuffer::State {
  using Job = replay_internal::SampleJob;

  State(Options* options, std::optional<Stream> copy_stream);
  ~State();

  void StartWorkers(int threads);

  // The parts, of what the constructor has left in `options`.
  absl::Status MakeParts(Options* options);

  absl::Status InsertTransform(std::optional<int64_t> place,
                               std::unique_ptr<Transform> transform)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(pause_mutex);

  // Sampling.
  absl::Status CheckBatchSize() const;
  // `copied` becomes null, or the event of the batch that is on its way.
  absl::Status SampleInto(int64_t items, TensorDict* out,
                          std::shared_ptr<const Event>* copied);
  absl::Status SampleAndWait(int64_t items, TensorDict* out);
  absl::Status SampleOnce(int64_t items, TensorDict* out,
                          std::shared_ptr<const Event>* copied,
                          bool* is_cleared);
  // Both in a turn to draw.
  absl::StatusOr<std::unique_ptr<Job>> Draw(int64_t items)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);
  // The batch that is next, and draws those ahead.
  absl::StatusOr<std::unique_ptr<Job>> TakeNext(int64_t items, bool* is_mine)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);
  // Batches for which workers are to be woken: those that are drawn, where no
  // more than half of `prefetch` is made or being made.
  int64_t NumToMake() const ABSL_SHARED_LOCKS_REQUIRED(queue_mutex);
  void Run(Job* job);
  absl::Status Place(Job* job) const;
  // The rows of a trajectory; false where it is not there any more, or not
  // wanted.
  absl::StatusOr<bool> TryToReadTrajectory(
      const TrajectoryFilter& filter, Slot newest,
      replay_internal::TrajectoryWatch* watch, StoredTrajectory* trajectory);
  absl::StatusOr<bool> ReadTrajectory(const TrajectoryFilter& filter,
                                      Slot newest,
                                      replay_internal::TrajectoryWatch* watch,
                                      StoredTrajectory* trajectory);
  void Work();
  // Waits until all that was drawn ahead is made.
  void AwaitQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);

  // Files (replay_buffer_files.cc).
  // kShared: who calls saves them, with other buffers' beside them.
  enum class Rows { kCopied, kInPlace, kShared };
  absl::Status ReplaceSave(absl::string_view caller,
                           const std::string& directory, Rows rows)
      ABSL_LOCKS_EXCLUDED(pause_mutex, queue_mutex);
  absl::Status SaveTo(const std::string& directory, Rows rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(pause_mutex)
          ABSL_LOCKS_EXCLUDED(queue_mutex);
  absl::Status SaveAhead(const std::string& directory, Manifest* manifest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);
  // Of sampler, unit, transforms and writer.
  OptionValues PartOptions() const;
  // A save that was compared with this buffer.
  struct Saved {
    bool is_position = false;
    Lanes lanes = {};
    // Options that are others now, without their part's name.
    std::vector<std::string> changed_sampler = {};
    std::vector<std::string> changed_writer = {};
    // Its batches were made by other options: they are drawn anew.
    bool drops_ahead = false;
  };
  // Reads what SaveTo wrote; of kShared rows where it is a part of a whole run,
  // else of others. `sums` as ReadManifest.
  static absl::StatusOr<Manifest> ReadSave(const std::string& directory,
                                           bool is_part, FileSums* sums);
  static absl::StatusOr<uint64_t> SeedOf(const Manifest& manifest);
  // Compares, and loads what does not depend on rows.
  absl::StatusOr<Saved> Prepare(const std::string& directory,
                                const Manifest& manifest,
                                const OpenOptions& options)
      ABSL_LOCKS_EXCLUDED(queue_mutex);
  // The buffer is new and goes where this fails.
  absl::Status LoadFrom(const std::string& directory, const Manifest& manifest,
                        const OpenOptions& options, const HeldDirectory& held);
  absl::Status LoadAhead(const std::string& directory, const Manifest& manifest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);
  // What belongs to the storage's rows, which are those of the save, or some of
  // them where they have `moved`.
  absl::Status LoadOfRows(const std::string& directory,
                          const Manifest& manifest, const Saved& saved,
                          const HeldDirectory& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);
  absl::Status LoadOfRows(const std::string& directory,
                          const Manifest& manifest, const Saved& saved,
                          const MovedRows* moved, const HeldDirectory& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);
  absl::Status LoadPosition(const std::string& directory,
                            const Manifest& manifest, const Saved& saved,
                            bool accept_newer, const HeldDirectory& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex);
  absl::Status LoadCounts(const Manifest& manifest);

  const std::shared_ptr<Storage> storage;
  const std::unique_ptr<Sampler> sampler;
  const std::shared_ptr<const UnitTransform> unit_transform;
  const Clock& clock;
  const absl::Time made_at;
  const int64_t batch_size;
  absl::once_flag batch_size_warning;
  const int64_t prefetch;
  const bool pin_memory;
  const std::optional<Device> device;
  const Device pin_for;
  // Of the copies to `device`, where rows come from host memory. Held by who
  // queues a copy and its event, or clears the stream's error.
  mutable absl::Mutex copy_mutex;
  const std::optional<Stream> copy_stream;
  const replay_internal::SampleReader::Options reader_options;

  // Wakes the workers. What is drawn may lie until half of `prefetch` has come
  // together, so that a caller seldom has to wake anybody; whoever waits for a
  // batch that may not have been begun rings.
  Doorbell bell;
  replay_internal::DrawGate gate{[this] { bell.Ring(); }};

  absl::Mutex pause_mutex;

  std::unique_ptr<replay_internal::TransformStage> transforms;
  std::unique_ptr<replay_internal::WritePath> writes;

  mutable absl::Mutex queue_mutex;
  uint64_t seed ABSL_GUARDED_BY(queue_mutex);
  std::atomic<uint64_t> batch_number = 0;  // Written with queue_mutex held.
  std::vector<std::unique_ptr<Job>> ahead ABSL_GUARDED_BY(queue_mutex);
  std::vector<std::unique_ptr<Job>> spare ABSL_GUARDED_BY(queue_mutex);
  bool is_stopping ABSL_GUARDED_BY(queue_mutex) = false;
  int64_t items_sampled ABSL_GUARDED_BY(queue_mutex) = 0;
  int64_t batches ABSL_GUARDED_BY(queue_mutex) = 0;
  int64_t batches_awaited ABSL_GUARDED_BY(queue_mutex) = 0;
  absl::Duration time_awaited ABSL_GUARDED_BY(queue_mutex) =
      absl::ZeroDuration();

  std::vector<std::thread> workers;
};

}  // namespace rill

#endif  // RILL_REPLAY_REPLAY_BUFFER_STATE_H_
