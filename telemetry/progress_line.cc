// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/progress_line.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace rill {
namespace {

// 1234567 -> "1,234,567".
std::string Grouped(int64_t value) {
  const std::string text = absl::StrCat(value);
  const size_t first = text.size() % 3;  // Digits before the first comma.
  std::string grouped = text.substr(0, first);
  for (size_t at = first; at < text.size(); at += 3) {
    absl::StrAppend(&grouped, grouped.empty() ? "" : ",", text.substr(at, 3));
  }
  return grouped;
}

}  // namespace

std::string FormatProgress(const Progress& progress) {
  std::string line = absl::StrFormat("step %s of %s", Grouped(progress.steps),
                                     Grouped(progress.max_steps));
  const double rate = progress.steps_per_second;
  if (rate > 0) {
    absl::StrAppendFormat(&line, " | %s steps/s", Grouped(std::llround(rate)));
  }
  absl::StrAppendFormat(&line, " | %s episodes", Grouped(progress.episodes));
  if (std::isfinite(progress.mean_return)) {
    absl::StrAppendFormat(&line, " | mean return %.1f", progress.mean_return);
  }
  if (rate > 0) {
    // Cut at 1e9 seconds: a rate near 0 would overflow the integer.
    const int64_t left = std::llround(std::min(
        static_cast<double>(progress.max_steps - progress.steps) / rate, 1e9));
    absl::StrAppendFormat(&line, " | at most %d:%02d left", left / 60,
                          left % 60);
  }
  if (!progress.note.empty()) absl::StrAppend(&line, " | ", progress.note);
  return line;
}

ProgressLine::ProgressLine(std::FILE* out, bool is_terminal)
    : out_(out), is_terminal_(is_terminal) {}

ProgressLine::~ProgressLine() {
  if (line_is_open_) std::fputc('\n', out_);
  std::fflush(out_);
}

void ProgressLine::Clear() {
  // ECMA-48: to the line's beginning, and erase to its end.
  if (line_is_open_) std::fputs("\r\033[K", out_);
  line_is_open_ = false;
}

void ProgressLine::Update(const Progress& progress, absl::Time now) {
  const absl::Duration pause =
      is_terminal_ ? absl::Milliseconds(100) : absl::Seconds(2);
  if (now - last_shown_ < pause) return;
  last_shown_ = now;
  Clear();
  std::fputs(FormatProgress(progress).c_str(), out_);
  if (is_terminal_) {
    line_is_open_ = true;
  } else {
    std::fputc('\n', out_);
  }
  std::fflush(out_);
}

void ProgressLine::Say(const std::string& text) {
  Clear();
  absl::FPrintF(out_, "%s\n", text);
  std::fflush(out_);
}

}  // namespace rill
