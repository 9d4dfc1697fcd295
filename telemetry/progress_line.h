// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_PROGRESS_LINE_H_
#define RILL_TELEMETRY_PROGRESS_LINE_H_

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "absl/time/time.h"

namespace rill {

// Where a run stands.
struct Progress {
  int64_t steps = 0;      // Of the environment, all lanes together.
  int64_t max_steps = 0;  // Where the run gives up.
  int64_t episodes = 0;
  // The mean over the last episodes; NaN before the first.
  double mean_return = std::numeric_limits<double>::quiet_NaN();
  double steps_per_second = 0;  // 0: not known yet.
  std::string note = {};        // What else the run has to say; may be empty.
};

// "step 40,960 of 500,000 | 61,234 steps/s | 812 episodes | mean return 187.3 |
// at most 0:08 left | note" on one line. Without a note it has less than 120
// characters.
std::string FormatProgress(const Progress& progress);

// Shows progress on a stream: one line that rewrites itself on a terminal,
// plain lines where the output goes to a file or a pipe.
//
// Thread-safety: thread-compatible. Time is the caller's, so tests hold it.
// Cost: an update that is not shown compares two times.
//
// Example (ProgressLineTest.Example runs it):
//   ProgressLine line(stdout, isatty(STDOUT_FILENO) == 1);
//   line.Update({.steps = 4096, .max_steps = 500'000, .episodes = 187},
//               Clock::System().Now());
//   line.Say("step 4096: saved");
class ProgressLine {
 public:
  // At most ten updates a second on a terminal, one in two seconds elsewhere.
  // `out` is not owned.
  ProgressLine(std::FILE* out, bool is_terminal);
  // Ends a line that is still being rewritten.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows `progress` unless the last one shown is too fresh.
  void Update(const Progress& progress, absl::Time now);

  // Writes `text` as a line of its own that stays, above the progress line.
  void Say(const std::string& text);

 private:
  void Clear();

  std::FILE* out_;
  bool is_terminal_;
  bool line_is_open_ = false;
  absl::Time last_shown_ = absl::InfinitePast();
};

}  // namespace rill

#endif  // RILL_TELEMETRY_PROGRESS_LINE_H_
