// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_REPORT_PROGRESS_LINE_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_REPORT_PROGRESS_LINE_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/time/time.h"

namespace rill::dqn_cartpole {

// Where a run stands.
struct Progress {
  int64_t steps = 0;      // Of the environment, all lanes together.
  int64_t max_steps = 0;  // Where the run gives up.
  int64_t episodes = 0;
  double mean_return = 0;       // Of the last episodes; NaN before the first.
  double steps_per_second = 0;  // 0: not known yet.
};

// "step 40,960 of 500,000 | 61,234 steps/s | 812 episodes | mean return 187.3 |
// at most 0:08 left" on one line of less than 100 characters.
std::string FormatProgress(const Progress& progress);

// Shows progress on a stream: one line that rewrites itself on a terminal,
// plain lines where the output goes to a file or a pipe.
//
// Thread-safety: thread-compatible. Time is the caller's, so tests hold it.
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

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_REPORT_PROGRESS_LINE_H_
