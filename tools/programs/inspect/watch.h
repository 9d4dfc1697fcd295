// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_WATCH_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/recorder/flight_log.h"
#include "rill/tools/programs/inspect/facts.h"
#include "rill/tools/programs/inspect/flight_summary.h"

namespace rill::inspect {

// The facts of one path.
struct WatchSection {
  std::string title = {};
  std::vector<std::pair<std::string, std::string>> facts = {};
  // Bars: what they are of, and a label and a count each.
  std::string bars_title = {};
  std::vector<std::pair<std::string, int64_t>> bars = {};
  // A line over the looks so far, the oldest first.
  std::string line_title = {};
  std::vector<double> line = {};
};

// These two are pure functions of what files have. The facts of a log, and
// rates since the look before.
WatchSection LogSection(const std::string& title, const FlightSummary& now,
                        const FlightSummary& before);
// The last whole row of a run's curve.csv (RFC 4180) under its columns, of
// which kMostColumns are shown. A row that a job is writing has no end yet.
inline constexpr size_t kMostColumns = 256;
WatchSection RunSection(const std::string& title, absl::string_view csv);

// Looks at what a running job writes, from another process: storage directories
// (rows, returns, ages), flight logs (rates, waits, priorities), and folders of
// runs (the last row of curve.csv). It opens files for reading only and takes
// no lock. A path that is not there yet, or cannot be read now, says so in its
// section. So does a file that is too large for a look: a log of more than
// kMostLogBytes, a curve of more than kMostCurveBytes.
// Thread-safety: thread-compatible.
// Cost: a look reads a log's file, a curve's, and what AddFacts reads of a
//   storage.
class Watch {
 public:
  static constexpr int64_t kMostLogBytes = int64_t{1} << 30;
  static constexpr int64_t kMostCurveBytes = int64_t{1} << 26;

  explicit Watch(std::vector<std::string> paths);

  // Rates are since the look before, of a log's first look since its beginning.
  std::vector<WatchSection> Look(absl::Time now);

 private:
  struct Log {
    std::string bytes;
    std::optional<FlightDecoder> decoder;
    FlightSummary summary, before;
  };
  struct Storage {
    std::optional<absl::Time> looked;
    int64_t written = 0;
    std::vector<double> returns;
  };

  WatchSection LookAtLog(const std::string& path);
  WatchSection LookAtStorage(const std::string& path, absl::Time now);

  const std::vector<std::string> paths_;
  std::map<std::string, Log> logs_;
  std::map<std::string, Storage> storages_;
};

// For a terminal of 80 columns.
std::string WatchText(const std::vector<WatchSection>& sections);
// A page that stands alone, and that a browser loads again each `every`.
std::string WatchHtml(const std::vector<WatchSection>& sections,
                      absl::Duration every);

// Whether a regular file is there that begins as a flight log does.
bool IsFlightLog(const std::string& path);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_WATCH_H_
