// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_RECORDER_FLIGHT_RECORDER_H_
#define RILL_RECORDER_FLIGHT_RECORDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/clock.h"
#include "rill/flow/decision_log.h"

namespace rill {

// Writes down what an asynchronous run decided, and repeats that run bit for
// bit, up to where it ended or crashed.
//
// Which batch comes next, the weights that each of its steps was made with, and
// where a worker died depend on time. All else follows from seeds, and from the
// order of calls. So a log has these few numbers, and checksums of what follows
// from them. A repeat is the same program, with the same options, in one
// thread: collectors step their workers' environments themselves, when the log
// says that a batch came. Each batch, write, draw, priority and snapshot of
// weights is compared.
//
// A program hands its recorder to the options of its weight store, collectors
// and replay buffers. It asks Choose where it decides by a clock or by what
// else is not the same again. All are made in one order, and called from one
// thread.
//
// All that was noted is in the file when the program crashes. A full disk ends
// the log, and not the run (status()).
//
// A repeat reads the log once, when it is made: of a run that still goes on, up
// to there. Behind the last event each call is ABORTED, and from the first
// event that is not the same on DATA_LOSS, whatever the program does with
// statuses. So a program says at its end what status() is, and fails with it.
//
// Not repeated: errors of a worker's parts (the repeat ends there),
// InferenceServer, states that are loaded into a collector. Values on a device
// are not compared.
//
// Thread-safety: thread-safe.
// Cost: an event is a look at the processor's counter, a CRC32C of its values
//   and a copy of its bytes, 15 on average in examples/async_dqn. A repeat keeps
//   the log, and the weights that a batch to come was made with.
//
// Example (FlightRecorderTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto recorder,
//                         FlightRecorder::Record({.path = path}));
//   RILL_ASSIGN_OR_RETURN(
//       auto weights,
//       WeightStore::Create({.weights = first, .recorder = recorder.get()}));
//   RILL_RETURN_IF_ERROR(weights->Publish(second).status());
//   RILL_ASSIGN_OR_RETURN(int64_t goes_on, recorder->Choose("goes on", 0));
//   RILL_RETURN_IF_ERROR(recorder->End());
class FlightRecorder : public DecisionLog {
 public:
  struct Options {
    std::string path = {};  // A new file.
    // For `tools/replay_run` to start: this program's file, and its arguments
    // without its name.
    std::string program = {};
    std::vector<std::string> arguments = {};
    const Clock* clock = &Clock::Steady();  // Outlives the recorder.
  };

  // Errors as those of base/file.h; FAILED_PRECONDITION if the file exists.
  static absl::StatusOr<std::unique_ptr<FlightRecorder>> Record(
      const Options& options);
  // Errors as ReadFile and FlightDecoder::Create.
  static absl::StatusOr<std::unique_ptr<FlightRecorder>> Repeat(
      const std::string& path);
  // The recorder of a program that is called so. It repeats the log that the
  // environment's RILL_REPLAY names, as tools/replay_run has it. Without that
  // it records to `path`. Null where that is empty too. A repeat shall write no
  // file that the run has written.
  // A loop that tries again, whatever the error is, would not end: after
  // kMostRefused calls behind the log's end or behind a difference, a repeat
  // ends the process. It says status() on stderr, and the exit status is 0
  // where that is OK, else 1.
  static absl::StatusOr<std::unique_ptr<FlightRecorder>> OfProgram(
      const std::string& path, int argc, char** argv);

  // `value`; of a repeat that of the run.
  virtual absl::StatusOr<int64_t> Choose(absl::string_view name,
                                         int64_t value) = 0;
  // The run ends here, by itself.
  virtual absl::Status End() = 0;

  static constexpr int64_t kMostRefused = 1000;

  // Events that were recorded, or repeated and were equal.
  virtual int64_t events() const = 0;
  // Whether a repeat's log ends with the run's End, so that the run had not
  // crashed.
  virtual bool has_end() const = 0;
  // The error with which a log that is recorded has ended early. A repeat is OK
  // where all of the log was repeated and was equal. Else DATA_LOSS names the
  // first event that is not the same, or that was not reached. It also says
  // that bytes behind the last event are no whole one: a log that is damaged,
  // or was cut.
  virtual absl::Status status() const = 0;
};

}  // namespace rill

#endif  // RILL_RECORDER_FLIGHT_RECORDER_H_
