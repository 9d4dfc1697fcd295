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
#include "rill/replay/placement.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_batches.h"
#include "rill/replay/sample_queue.h"
#include "rill/replay/trajectory_watch.h"
#include "rill/replay/transform_stage.h"
#include "rill/replay/write_path.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// ReplayBuffer's body.
//
// Order of locks: pause_mutex (shared by calls, held alone by Save and Clear)
// before those of the parts. Of these only two meet: a turn of the gate comes
// before the lock of the queue (sample_queue.h).
struct ReplayBuffer::State {
  explicit State(Options* options);

  // The parts, of what the constructor has left in `options`.
  absl::Status MakeParts(Options* options);

  absl::Status InsertTransform(std::optional<int64_t> place,
                               std::unique_ptr<Transform> transform)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(pause_mutex);

  absl::Status CheckBatchSize() const;
  absl::Status SampleInto(int64_t items, replay_internal::PlacedBatch* out);
  absl::Status SampleAndWait(int64_t items, TensorDict* out);
  // The rows of a trajectory; false where it is not there any more, or not
  // wanted.
  absl::StatusOr<bool> TryToReadTrajectory(
      const TrajectoryFilter& filter, Slot newest,
      replay_internal::TrajectoryWatch* watch, StoredTrajectory* trajectory);
  absl::StatusOr<bool> ReadTrajectory(const TrajectoryFilter& filter,
                                      Slot newest,
                                      replay_internal::TrajectoryWatch* watch,
                                      StoredTrajectory* trajectory);
  // Files (replay_buffer_files.cc).
  // kShared: who calls saves them, with other buffers' beside them.
  enum class Rows { kCopied, kInPlace, kShared };
  absl::Status ReplaceSave(absl::string_view caller,
                           const std::string& directory, Rows rows)
      ABSL_LOCKS_EXCLUDED(pause_mutex);
  absl::Status SaveTo(const std::string& directory, Rows rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(pause_mutex);
  absl::Status SaveAhead(const std::string& directory,
                         Manifest* manifest) const;
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
                                const OpenOptions& options);
  // The buffer is new and goes where this fails.
  absl::Status LoadFrom(const std::string& directory, const Manifest& manifest,
                        const OpenOptions& options, const HeldDirectory& held);
  absl::Status LoadAhead(const std::string& directory,
                         const Manifest& manifest);
  // What belongs to the storage's rows, which are those of the save, or some of
  // them where they have `moved`.
  absl::Status LoadOfRows(const std::string& directory,
                          const Manifest& manifest, const Saved& saved,
                          const HeldDirectory& held);
  absl::Status LoadOfRows(const std::string& directory,
                          const Manifest& manifest, const Saved& saved,
                          const MovedRows* moved, const HeldDirectory& held);
  absl::Status LoadPosition(const std::string& directory,
                            const Manifest& manifest, const Saved& saved,
                            bool accept_newer, const HeldDirectory& held);
  absl::Status LoadCounts(const Manifest& manifest);

  const std::shared_ptr<Storage> storage;
  const std::unique_ptr<Sampler> sampler;
  const std::shared_ptr<const UnitTransform> unit_transform;
  const Clock& clock;
  const absl::Time made_at;
  absl::once_flag batch_size_warning;
  // Wakes the workers. What is drawn may lie until half of `prefetch` has come
  // together, so that a caller seldom has to wake anybody; whoever waits for a
  // batch that may not have been begun rings.
  Doorbell wake;
  replay_internal::DrawGate gate{[this] { wake.Ring(); }};

  absl::Mutex pause_mutex;

  std::unique_ptr<replay_internal::TransformStage> transforms;
  std::unique_ptr<replay_internal::WritePath> writes;
  std::unique_ptr<replay_internal::Placement> placement;
  std::unique_ptr<replay_internal::SampleQueue> samples;
};

}  // namespace rill

#endif  // RILL_REPLAY_REPLAY_BUFFER_STATE_H_
