// SPDX-License-Identifier: Apache-2.0
//
// inspect: see --help.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/tools/programs/inspect/find_facts.h"
#include "rill/tools/programs/inspect/flight_summary.h"
#include "rill/tools/programs/inspect/json_report.h"
#include "rill/tools/programs/inspect/saved.h"
#include "rill/tools/programs/inspect/text_report.h"
#include "rill/tools/programs/inspect/watch.h"

namespace rill::inspect {
namespace {

constexpr char kUsage[] =
    "usage: inspect PATH [--json] [--values] [--all]\n"
    "Says what a saved dictionary, a storage's directory, a saved buffer or a\n"
    "replay buffer of TorchRL's holds: rows, episodes, returns, priorities.\n"
    "Draws a flight log (recorder/README.md) as a timeline.\n"
    "  --json    as JSON (docs/formats/inspect.md); not of a flight log\n"
    "  --values  the elements too: all in JSON, else a summary; each event\n"
    "  --all     all rows for episodes, returns and leaves, not the newest\n"
    "What is damaged is said, with the rest, and the exit status is 1.\n"
    "usage: inspect --watch PATH... [--html=FILE] [--every=SECONDS] "
    "[--looks=N]\n"
    "Looks again and again at what a running job writes: storage directories,\n"
    "flight logs, folders with a curve.csv. Writes nothing but FILE, a page.\n";

struct Arguments {
  std::vector<std::string> paths = {};
  bool json = false, values = false, all = false, help = false;
  bool watch = false;
  std::string html = {};
  double every = 1;    // Seconds.
  int64_t looks = -1;  // -1: without end.
};

absl::StatusOr<Arguments> Parse(int argc, char** argv) {
  Arguments got;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    absl::string_view value = word;
    if (word == "--help" || word == "-h") {
      got.help = true;
    } else if (word == "--json") {
      got.json = true;
    } else if (word == "--values") {
      got.values = true;
    } else if (word == "--all") {
      got.all = true;
    } else if (word == "--watch") {
      got.watch = true;
    } else if (absl::ConsumePrefix(&value, "--html=")) {
      got.html = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--every=") &&
               absl::SimpleAtod(value, &got.every) && got.every >= 0) {
      continue;
    } else if (absl::ConsumePrefix(&value, "--looks=") &&
               absl::SimpleAtoi(value, &got.looks) && got.looks > 0) {
      continue;
    } else if (word.substr(0, 2) == "--" || word.empty() ||
               (!got.paths.empty() && !got.watch)) {
      return InvalidArgument("inspect: got \"", word,
                             "\", want one path, --json, --values and --all, "
                             "or --watch and paths; see --help");
    } else {
      got.paths.emplace_back(word);
    }
  }
  if (got.paths.empty() && !got.help) {
    return InvalidArgument(
        "inspect: got no path; say \"inspect PATH\", or --help");
  }
  return got;
}

// A full disk or a closed pipe must not look like success.
bool Print(absl::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

// `damage` is a line of error beside the report.
absl::StatusOr<std::string> Report(const Arguments& arguments,
                                   std::string* damage) {
  const std::string& path = arguments.paths[0];
  if (IsFlightLog(path)) {
    if (arguments.json) {
      return InvalidArgument("inspect: \"", path,
                             "\": got --json, want none: a flight log has no "
                             "JSON; --values says each event");
    }
    RILL_ASSIGN_OR_RETURN(const std::string log, ReadFile(path));
    return TimelineText(log, arguments.values);
  }
  FactOptions facts;
  if (arguments.all) facts.max_rows = std::numeric_limits<int64_t>::max();
  RILL_ASSIGN_OR_RETURN(Saved saved, OpenSaved(path));
  facts.leaves = !arguments.json;
  // Never fails: what it cannot read is damage that is shown.
  AddFacts(path, facts, &saved);
  if (saved.is_damaged()) {
    *damage = absl::StrCat("DATA_LOSS: inspect: \"", path,
                           "\": parts are damaged, as shown");
  }
  if (!arguments.json) {
    return TextReport(saved, path, {.values = arguments.values});
  }
  RILL_ASSIGN_OR_RETURN(std::string text,
                        JsonReport(saved, {.values = arguments.values}));
  text.push_back('\n');
  return text;
}

// Until its looks are over, or somebody ends it.
absl::Status WatchPaths(const Arguments& arguments) {
  Watch watch(arguments.paths);
  const absl::Duration every = absl::Seconds(arguments.every);
  // A terminal's screen is written over, a pipe gets one look behind the other.
  const absl::string_view begin =
      isatty(STDOUT_FILENO) == 1 ? "\x1b[H\x1b[2J" : "";
  for (int64_t look = 0; look != arguments.looks; ++look) {
    if (look > 0) absl::SleepFor(every);
    const std::vector<WatchSection> sections =
        watch.Look(Clock::Steady().Now());
    if (!arguments.html.empty()) {
      RILL_RETURN_IF_ERROR(
          WriteFileAtomically(arguments.html, WatchHtml(sections, every)));
    }
    if (!Print(absl::StrCat(begin, WatchText(sections)))) {
      return Unavailable("inspect: the report could not be written");
    }
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status) {
  std::fprintf(
      stderr, "%s\n",
      OneLine(status.ToString(absl::StatusToStringMode::kWithNoExtraData))
          .c_str());
  return 1;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Arguments> arguments = Parse(argc, argv);
  if (!arguments.ok()) return Fail(arguments.status());
  if (!arguments->help && arguments->watch) {
    const absl::Status watched = WatchPaths(*arguments);
    return watched.ok() ? 0 : Fail(watched);
  }
  std::string damage;
  const absl::StatusOr<std::string> report =
      arguments->help ? std::string(kUsage) : Report(*arguments, &damage);
  if (!report.ok()) return Fail(report.status());
  if (!Print(*report)) {
    std::fprintf(stderr, "inspect: the report could not be written\n");
    return 1;
  }
  if (damage.empty()) return 0;
  std::fprintf(stderr, "%s\n", OneLine(damage).c_str());
  return 1;
}

}  // namespace
}  // namespace rill::inspect

int main(int argc, char** argv) { return rill::inspect::Main(argc, argv); }
