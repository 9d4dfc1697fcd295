// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_FLIGHT_SUMMARY_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_FLIGHT_SUMMARY_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/flow/decision_log.h"
#include "rill/recorder/flight_log.h"
#include "rill/tools/programs/inspect/facts.h"

namespace rill::inspect {

// Sums over the events of a flight log, up to the last one that was added.
// Whatever the numbers of events are, sums end at the largest number, and what
// there may be many of at kMost.
// Thread-safety: thread-compatible. Cost: O(numbers) an event.
class FlightSummary {
 public:
  // Parts, workers, and kinds of parts. More count as events alone.
  static constexpr size_t kMost = 4096;
  static constexpr size_t kMostStatuses = 64;  // Of a worker.

  struct Worker {
    int64_t batches = 0;
    int64_t steps = 0;  // Time steps of its batches, in all.
    int64_t ends = 0;
    std::map<int64_t, int64_t> statuses = {};  // Of wait(2), how often.
    // How many versions the weights of its steps were behind when they arrived.
    Spread age = {};
  };
  // Events of one kind of one part, with the sum of what they were of: rows
  // written, items drawn, priorities given.
  struct Count {
    int64_t events = 0;
    int64_t items = 0;
  };

  void Add(const FlightEvent& event);

  int64_t events() const { return events_; }
  absl::Duration length() const { return length_; }
  bool has_ended() const { return has_ended_; }
  const std::vector<std::string>& parts() const { return parts_; }
  // By part and number.
  const std::map<std::pair<int64_t, int64_t>, Worker>& workers() const {
    return workers_;
  }
  const std::map<std::pair<int64_t, Decision::Kind>, Count>& counts() const {
    return counts_;
  }
  // The sum over all parts.
  Count CountOf(Decision::Kind kind) const;
  // From the event before each batch to the batch: what the run has waited for
  // them, and the arithmetic of its own that came before.
  absl::Duration waited() const { return waited_; }
  // Rows by powers of two (PriorityCounts), of the last kUpdates updates that
  // have them. -1000 is of those that are not above 0.
  static constexpr size_t kUpdates = 64;
  static constexpr int64_t kZero = -1000;
  std::map<int64_t, int64_t> Priorities() const;
  // The sum over all workers.
  Spread Ages() const;

 private:
  void AddArrival(const FlightEvent& event);
  void AddEnd(const FlightEvent& event);
  // Null where there are kMost others.
  Worker* WorkerOf(int64_t part, int64_t number);

  int64_t events_ = 0;
  absl::Duration length_, waited_;
  bool has_ended_ = false;
  std::vector<std::string> parts_;
  std::map<std::pair<int64_t, int64_t>, Worker> workers_;
  std::map<std::pair<int64_t, Decision::Kind>, Count> counts_;
  int64_t newest_ = 0;  // The version that was published last.
  std::deque<PriorityCounts> updates_;
};

// A log for people: what wrote it, its parts, and time from left to right with
// a line for each worker and each kind of event. With `all_events` each event
// comes behind that, a line each. Errors as FlightDecoder::Create.
absl::StatusOr<std::string> TimelineText(absl::string_view log,
                                         bool all_events);

// "signal 9", "exit status 1": a status of wait(2); -1 is no process.
std::string EndText(int64_t status);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_FLIGHT_SUMMARY_H_
