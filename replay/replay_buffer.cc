// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/replay_buffer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/replay/rows/trajectory_walk.h"

namespace rill {

absl::Status ReplayBuffer::CheckOptions(const Options& options) {
  return replay_internal::CheckBufferOptions(options);
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  auto state = std::make_unique<State>();
  state->recorder = options.recorder;
  if (state->recorder != nullptr) {
    RILL_ASSIGN_OR_RETURN(
        state->part,
        state->recorder->AddPart(absl::StrCat(
            "ReplayBuffer: seed ", options.seed, ", batch_size ",
            options.batch_size, ", capacity ", options.storage->capacity(),
            ", sampler ", options.sampler->name())));
  }
  RILL_ASSIGN_OR_RETURN(
      state->parts,
      CatchExceptions(
          [&] {
            return replay_internal::BufferParts::Create(std::move(options));
          },
          "ReplayBuffer::Create"));
  return std::unique_ptr<ReplayBuffer>(new ReplayBuffer(std::move(state)));
}

ReplayBuffer::ReplayBuffer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

ReplayBuffer::~ReplayBuffer() = default;

// --- Accessors ---------------------------------------------------------------

ReplayBuffer::Stats ReplayBuffer::GetStats() const {
  return state_->parts->GetStats();
}

int64_t ReplayBuffer::size() const { return state_->parts->storage->size(); }

int64_t ReplayBuffer::items() const { return state_->parts->items(); }

int64_t ReplayBuffer::capacity() const {
  return state_->parts->storage->capacity();
}

const Storage& ReplayBuffer::storage() const { return *state_->parts->storage; }

int64_t ReplayBuffer::batch_size() const {
  return state_->parts->samples->batch_size();
}

uint64_t ReplayBuffer::batch_number() const {
  return state_->parts->samples->batch_number();
}

int64_t ReplayBuffer::clears() const { return state_->parts->writes->clears(); }

// --- Trajectories ------------------------------------------------------------

absl::Status ReplayBuffer::Iterate(
    const TrajectoryFilter& filter,
    absl::FunctionRef<absl::StatusOr<bool>(const StoredTrajectory&)> visit) {
  RILL_ASSIGN_OR_RETURN(
      const auto walk,
      replay_internal::TrajectoryWalk::Begin(
          &filter, state_->parts->storage.get(), &state_->parts->drawn_rows));
  StoredTrajectory trajectory;
  for (;;) {
    bool is_there = false;
    {
      // Only while rows are read: `visit` may call the buffer.
      absl::ReaderMutexLock pause(&state_->pause_mutex);
      RILL_ASSIGN_OR_RETURN(is_there, walk->Next(&trajectory));
    }
    if (!is_there) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(
        const bool goes_on,
        CatchExceptions([&] { return visit(trajectory); },
                        "ReplayBuffer::Iterate: the function"));
    if (!goes_on) return absl::OkStatus();
  }
}

absl::StatusOr<std::vector<StoredTrajectory>> ReplayBuffer::Query(
    const TrajectoryFilter& filter,
    absl::FunctionRef<absl::StatusOr<bool>(const StoredTrajectory&)> where,
    int64_t limit) {
  if (limit < 0) {
    return InvalidArgument("ReplayBuffer::Query: limit: got ", limit,
                           ", want >= 0");
  }
  std::vector<StoredTrajectory> found;
  if (limit == 0) return found;
  const auto keep =
      [&](const StoredTrajectory& trajectory) -> absl::StatusOr<bool> {
    RILL_ASSIGN_OR_RETURN(const bool is_wanted, where(trajectory));
    if (is_wanted) found.push_back(trajectory);
    return static_cast<int64_t>(found.size()) < limit;
  };
  RILL_RETURN_IF_ERROR(Iterate(filter, keep));
  return found;
}

// --- Files -------------------------------------------------------------------

absl::Status ReplayBuffer::State::Save(
    absl::string_view caller, const std::string& directory,
    replay_internal::BufferCheckpoint::Rows rows) {
  absl::MutexLock pause(&pause_mutex);
  return CatchExceptions(
      [&] { return parts->checkpoint->Replace(caller, directory, rows); },
      caller);
}

absl::Status ReplayBuffer::Save(const std::string& directory) const {
  return state_->Save("ReplayBuffer::Save", directory,
                      replay_internal::BufferCheckpoint::Rows::kCopied);
}

absl::Status ReplayBuffer::SavePosition(const std::string& directory) const {
  return state_->Save("ReplayBuffer::SavePosition", directory,
                      replay_internal::BufferCheckpoint::Rows::kInPlace);
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Open(
    const std::string& directory, Options options) {
  return Open(directory, std::move(options), OpenOptions());
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Open(
    const std::string& directory, Options options,
    const OpenOptions& open_options) {
  using replay_internal::BufferCheckpoint;
  std::unique_ptr<ReplayBuffer> buffer;
  const auto make =
      [&](uint64_t seed) -> absl::StatusOr<const BufferCheckpoint*> {
    // The random numbers of the saved buffer go on.
    options.seed = seed;
    RILL_ASSIGN_OR_RETURN(buffer, Create(std::move(options)));
    return buffer->state_->parts->checkpoint.get();
  };
  RILL_RETURN_IF_ERROR(CatchExceptions(
      [&] { return BufferCheckpoint::Open(directory, open_options, make); },
      "ReplayBuffer::Open"));
  return buffer;
}

}  // namespace rill
