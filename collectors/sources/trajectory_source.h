// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_SOURCES_TRAJECTORY_SOURCE_H_
#define RILL_COLLECTORS_SOURCES_TRAJECTORY_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/flow/producers.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill {

// The whole trajectories of another source, each once: TorchRL's
// trajs_per_batch. A trajectory is whole once its lane is done, terminated or
// truncated. Steps of open ones wait for that, over any number of batches. A
// source with set_truncated ends them with each of its batches.
//
// Order: that of the batches of the source; inside one by time step of the end,
// then by lane. The last batch of a source that comes to an end (OUT_OF_RANGE)
// may have fewer than trajectories_per_batch.
//
// These are dropped:
// - Trajectories that the source cuts (Sink::Cut), also what follows of them.
// - One whose lane goes on under another id before it is done.
// - Those that are open when the source ends.
// - The first one of each lane behind a batch whose number is missing
//   (WriteInfo::sequence): MultiAsyncCollector drops batches with
//   max_staleness, and the first steps may be among them.
// - Steps of id -1, which are missing.
//
// Shapes: kPadded is [trajectories, longest], with zeros behind last steps and
//   `collector/mask` bool [trajectories, longest], true where a step is. kCat
//   is [1, steps], one trajectory behind the other. CollectInto always writes
//   that, as one lane whose every trajectory ends done: no slice spans two.
// Thread-safety: that of Source. Stop also cancels a call that waits for
//   trajectories, between batches of the source.
// Cost: a step is copied twice, in host memory. The steps of open trajectories
//   are kept: give an environment without an end a limit
//   (SyncCollector::Options::max_frames_per_traj).
//
// Example (TrajectorySourceTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto episodes, TrajectorySource::Create(
//       {.source = std::move(collector), .trajectories_per_batch = 4}));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, episodes->Next());  // [4, longest]
class TrajectorySource final : public Source {
 public:
  enum class Format { kPadded, kCat };

  struct Options {
    std::unique_ptr<Source> source = nullptr;  // Required.
    int64_t trajectories_per_batch = 1;        // > 0.
    Format format = Format::kPadded;
    // The environment's ends, bool [1] a step.
    std::string done_key = "next/done";
    // WriteInfo of CollectInto, as SyncCollector::Options::producer.
    std::optional<int64_t> producer = std::nullopt;
    int64_t lane = 0;  // All batches are written there.
  };

  // INVALID_ARGUMENT names the option, or the leaf of the source that is
  // missing or of another kind: done_key; `collector/traj_ids`, int64 [].
  // Entries that are no tensors cannot wait, and are refused.
  static absl::StatusOr<std::unique_ptr<TrajectorySource>> Create(
      Options options);

  const TensorDictSpec& spec() const override { return spec_; }
  // Steps of the trajectories that were handed out.
  int64_t frames() const override { return frames_; }
  const Times& times() const override { return options_.source->times(); }

  // Errors of the source come back, and lose no step that it has handed over.
  absl::StatusOr<TensorDict> Next() override;
  absl::Status CollectInto(Sink& sink) override;
  void Stop() override { is_stopped_.store(true, std::memory_order_relaxed); }

  // The source's state and all steps that wait.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  // Steps in pieces, as the batches have them: of each its number of steps, and
  // their bytes leaf by leaf.
  struct Trajectory {
    int64_t id = -1;
    int64_t steps = 0;
    std::vector<int64_t> pieces = {};
    std::vector<std::byte> bytes = {};
  };
  struct Lane {
    Trajectory open;
    int64_t dropped = -1;  // Steps of this id are dropped; -1: none.
  };
  struct Leaf {
    std::string key;
    int64_t row_bytes = 0;
  };
  // Where the rows of a batch lie, by leaf.
  using Rows = std::vector<const std::byte*>;
  // Trajectories that end in a batch, with the time step of the end.
  using Ended = std::vector<std::pair<int64_t, Trajectory>>;

  explicit TrajectorySource(Options options) : options_(std::move(options)) {}

  absl::Status Bind();
  absl::Status CheckLeaf(absl::string_view key, DType dtype, const Shape& shape,
                         size_t* number) const;
  absl::Status CheckStopped();
  // The sink of the source.
  absl::Status Take(const TensorDict& batch, const WriteInfo& info);
  void TakeLane(const Rows& rows, int64_t first, int64_t time, Lane* lane,
                Ended* ended) const;
  void Append(const Rows& rows, int64_t begin, int64_t end,
              Trajectory* to) const;
  void Drop(LaneRange lanes);
  // Waits for the whole trajectories of the next batch. Their number.
  absl::StatusOr<int64_t> Collect();
  std::vector<const Trajectory*> First(int64_t trajectories) const;
  absl::StatusOr<TensorDict> Join(
      const std::vector<const Trajectory*>& trajectories, Format format) const;
  void HandOut(int64_t trajectories);
  void Save(absl::string_view key,
            const std::vector<const Trajectory*>& trajectories,
            StateWriter* state) const;
  absl::StatusOr<std::vector<Trajectory>> Load(const StateReader& state,
                                               absl::string_view key,
                                               int64_t min_steps) const;

  const Options options_;
  TensorDictSpec spec_;
  std::vector<Leaf> leaves_;  // Of the source.
  int64_t step_bytes_ = 0;    // The sum of theirs.
  size_t done_ = 0;           // The numbers of two of them.
  size_t id_ = 0;
  bool adds_mask_ = false;
  std::map<int64_t, Lane> lanes_;      // By lane of the source.
  std::map<int64_t, int64_t> newest_;  // Number of a batch, by producer.
  std::deque<Trajectory> whole_;
  int64_t frames_ = 0;
  int64_t sequence_ = 0;  // Batches that a sink has taken.
  ProducerNumbers producers_;
  const uint64_t writer_ = NewSource();
  std::atomic<bool> is_stopped_ = false;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_SOURCES_TRAJECTORY_SOURCE_H_
