// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_RUN_FOLDER_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_RUN_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/examples/dqn_cartpole/checkpoint.h"
#include "rill/examples/dqn_cartpole/run_log.h"
#include "rill/telemetry/tensorboard_writer.h"

namespace rill::dqn_cartpole {

// The folder that a run writes:
//
//   curve.csv     one row each --probe_every frames (run_log.h)
//   curve.svg     the learning curve
//   events.out.tfevents.*   the rows as TensorBoard scalars
//   checkpoint/   what --resume goes on from (checkpoint.h)
//
// Files are replaced atomically, events are appended record by record: a reader
// never meets half a file.
// Thread-safety: thread-compatible.
class RunFolder {
 public:
  // Makes `path` and the event file. FAILED_PRECONDITION if it exists and is
  // not an empty directory: a run never writes over another.
  static absl::StatusOr<RunFolder> Create(const std::string& path,
                                          absl::Time now);

  // Goes on in `path` at `events`; what the event file got after the
  // checkpoint is cut off, since the resumed run writes it again. Removes the
  // temporary files of a run that was killed; no other run may be at work here.
  static absl::StatusOr<RunFolder> Resume(const std::string& path,
                                          const EventsPosition& events);

  // Appends `row` to the event file.
  absl::Status WriteEvents(const RunRow& row, absl::Time now);
  // Replaces curve.csv, and curve.svg too.
  absl::Status WriteCsv(const RunLog& log) const;
  absl::Status WriteCurve(const RunLog& log, const Config& config) const;

  const std::string& path() const { return path_; }
  std::string checkpoint_path() const;
  EventsPosition events_position() const;

 private:
  RunFolder(std::string path, std::unique_ptr<TensorBoardWriter> events);

  std::string path_;
  std::unique_ptr<TensorBoardWriter> events_;
};

// Where the checkpoint of the run in `run_path` lies.
std::string CheckpointPath(const std::string& run_path);

// "runs/seed_7", or the first of "runs/seed_7_2", "runs/seed_7_3", ... that
// does not exist.
std::string ChooseRunPath(int64_t seed);

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_RUN_FOLDER_H_
