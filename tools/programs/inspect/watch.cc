// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/watch.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "rill/base/file.h"
#include "rill/tools/programs/inspect/find_facts.h"
#include "rill/tools/programs/inspect/saved.h"
#include "rill/tools/programs/inspect/text_report.h"

namespace rill::inspect {
namespace {

using Kind = Decision::Kind;

constexpr size_t kMostPoints = 600;  // Of a line.
constexpr int kBarColumns = 40;

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

// "12.5/s".
std::string Rate(int64_t now, int64_t before, double seconds) {
  return absl::StrCat(
      Number(static_cast<double>(now - before) / std::max(seconds, 1e-6)),
      "/s");
}

std::string SpreadText(const Spread& spread) {
  if (spread.count == 0) return "none yet";
  return absl::StrCat("mean ", Number(spread.mean()), ", ", Number(spread.min),
                      " to ", Number(spread.max));
}

std::string BarLabel(int64_t exponent) {
  if (exponent == FlightSummary::kZero) return "0";
  return absl::StrCat("from ",
                      Number(std::ldexp(1.0, static_cast<int>(exponent))));
}

// Counts since the look before.
void AddRates(const FlightSummary& now, const FlightSummary& before,
              WatchSection* section) {
  const double seconds = absl::ToDoubleSeconds(now.length() - before.length());
  const auto add = [&](absl::string_view name, Kind kind, bool by_items) {
    const FlightSummary::Count after = now.CountOf(kind);
    if (after.events == 0) return;
    const FlightSummary::Count early = before.CountOf(kind);
    std::string text = absl::StrCat(after.events, ", ",
                                    Rate(after.events, early.events, seconds));
    if (by_items) {
      absl::StrAppend(&text, "; rows ",
                      Rate(after.items, early.items, seconds));
    }
    section->facts.emplace_back(name, std::move(text));
  };
  add("batches of workers", Kind::kArrival, false);
  add("writes", Kind::kWrite, true);
  add("draws", Kind::kDraw, true);
  add("new priorities", Kind::kPriorities, true);
  add("patches", Kind::kPatch, true);
  add("weights", Kind::kPublish, false);
  add("ends of workers", Kind::kReplace, false);
  if (now.CountOf(Kind::kArrival).events == 0) return;
  const absl::Duration waited = now.waited() - before.waited();
  section->facts.emplace_back(
      "wait for batches", absl::StrFormat("%.0f%% of the time",
                                          100 * absl::ToDoubleSeconds(waited) /
                                              std::max(seconds, 1e-6)));
  section->facts.emplace_back("age of weights, versions",
                              SpreadText(now.Ages()));
}

// Where the record at the front ends, behind its newline: outside of quotes;
// npos where it has no end.
size_t EndOfRecord(absl::string_view csv) {
  bool is_quoted = false;
  for (size_t i = 0; i < csv.size(); ++i) {
    if (csv[i] == '"') is_quoted = !is_quoted;
    if (csv[i] == '\n' && !is_quoted) return i + 1;
  }
  return absl::string_view::npos;
}

// The last record that has an end, of records that begin at the front.
absl::string_view LastRecord(absl::string_view csv) {
  absl::string_view last;
  for (size_t end = EndOfRecord(csv); end != absl::string_view::npos;
       end = EndOfRecord(csv)) {
    last = csv.substr(0, end);
    csv.remove_prefix(end);
  }
  return last;
}

// The first kMostColumns cells of a record.
std::vector<std::string> CellsOf(absl::string_view record) {
  if (!absl::ConsumeSuffix(&record, "\r\n")) {
    absl::ConsumeSuffix(&record, "\n");
  }
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (size_t i = 0; i < record.size(); ++i) {
    if (record[i] == '"') {
      // Within quotes two are one.
      if (is_quoted && record.substr(i, 2) == "\"\"") {
        cells.back() += record[i++];
      } else {
        is_quoted = !is_quoted;
      }
    } else if (record[i] == ',' && !is_quoted) {
      if (cells.size() == kMostColumns) break;
      cells.emplace_back();
    } else {
      cells.back() += record[i];
    }
  }
  return cells;
}

WatchSection Unreadable(const std::string& path, const absl::Status& status) {
  return {.title = path, .facts = {{"not readable now", status.ToString()}}};
}

// The facts of a directory, or of the first of its parts that has some.
const Facts* FactsOf(const Saved& saved) {
  if (saved.facts.has_value()) return &*saved.facts;
  for (const auto& [name, part] : saved.parts) {
    if (const Facts* const facts = FactsOf(part)) return facts;
  }
  return nullptr;
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(
      OneLine(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

int64_t MostOf(const WatchSection& section) {
  int64_t most = 1;
  for (const auto& [label, count] : section.bars) most = std::max(most, count);
  return most;
}

// How long a bar is, rounded up: what is there is seen.
int64_t BarLength(int64_t count, int64_t most, int64_t longest) {
  return static_cast<int64_t>(
      std::ceil(static_cast<double>(count) / static_cast<double>(most) *
                static_cast<double>(longest)));
}

// A line as SVG, between its smallest and its largest value.
std::string LineSvg(const std::vector<double>& line) {
  const auto [least, most] = std::minmax_element(line.begin(), line.end());
  const double span = std::max(*most - *least, 1e-12);
  std::string points;
  for (size_t i = 0; i < line.size(); ++i) {
    absl::StrAppendFormat(
        &points, "%.1f,%.1f ",
        600.0 * static_cast<double>(i) /
            std::max<double>(1, static_cast<double>(line.size() - 1)),
        98 - 96 * (line[i] - *least) / span);
  }
  return absl::StrCat(
      "<svg viewBox=\"0 0 600 100\" width=\"600\" height=\"100\">"
      "<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"1.5\" "
      "points=\"",
      points, "\"/></svg><p>", Number(*least), " to ", Number(*most), ", now ",
      Number(line.back()), "</p>\n");
}

}  // namespace

WatchSection LogSection(const std::string& title, const FlightSummary& now,
                        const FlightSummary& before) {
  WatchSection section = {.title = title};
  section.facts.emplace_back(
      "events", absl::StrCat(now.events(), " in ",
                             Number(absl::ToDoubleSeconds(now.length())), " s",
                             now.has_ended() ? "; the run has ended" : ""));
  AddRates(now, before, &section);
  section.bars_title = "priorities, as they were given last";
  for (const auto& [exponent, rows] : now.Priorities()) {
    section.bars.emplace_back(BarLabel(exponent), rows);
  }
  return section;
}

WatchSection RunSection(const std::string& title, absl::string_view csv) {
  WatchSection section = {.title = title};
  const size_t header = EndOfRecord(csv);
  const absl::string_view row = header == absl::string_view::npos
                                    ? absl::string_view()
                                    : LastRecord(csv.substr(header));
  if (row.empty()) {
    section.facts.emplace_back("rows", "none yet");
    return section;
  }
  const std::vector<std::string> columns = CellsOf(csv.substr(0, header));
  const std::vector<std::string> values = CellsOf(row);
  for (size_t i = 0; i < std::min(columns.size(), values.size()); ++i) {
    if (values[i].empty()) continue;
    section.facts.emplace_back(columns[i], values[i]);
  }
  return section;
}

bool IsFlightLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[8] = {};
  file.read(magic, sizeof(magic));
  return file.gcount() == sizeof(magic) &&
         absl::string_view(magic, sizeof(magic)) == "RILLFLOG";
}

Watch::Watch(std::vector<std::string> paths) : paths_(std::move(paths)) {}

std::vector<WatchSection> Watch::Look(absl::Time now) {
  std::vector<WatchSection> sections;
  for (const std::string& path : paths_) {
    if (IsFlightLog(path)) {
      sections.push_back(LookAtLog(path));
    } else if (PathExists(path + "/curve.csv")) {
      const auto csv = ReadFile(path + "/curve.csv", kMostCurveBytes);
      sections.push_back(csv.ok() ? RunSection("run " + path, *csv)
                                  : Unreadable(path, csv.status()));
    } else {
      sections.push_back(LookAtStorage(path, now));
    }
  }
  return sections;
}

WatchSection Watch::LookAtLog(const std::string& path) {
  Log& log = logs_[path];
  auto bytes = ReadFile(path, kMostLogBytes);
  if (!bytes.ok()) return Unreadable(path, bytes.status());
  // Another log under the same name begins anew.
  auto fresh = FlightDecoder::Create(*bytes);
  if (!fresh.ok()) return Unreadable(path, fresh.status());
  if (!log.decoder.has_value() ||
      !absl::StartsWith(*bytes, absl::string_view(log.bytes).substr(
                                    0, log.decoder->position()))) {
    log = Log();
    log.decoder = *std::move(fresh);
  }
  log.bytes = *std::move(bytes);
  log.decoder->Extend(log.bytes);
  FlightEvent event;
  while (log.decoder->Next(&event)) log.summary.Add(event);
  WatchSection section = LogSection("log " + path, log.summary, log.before);
  section.facts[0].second +=
      absl::StrCat(", ", log.decoder->position(), " bytes");
  log.before = log.summary;
  return section;
}

WatchSection Watch::LookAtStorage(const std::string& path, absl::Time now) {
  auto saved = OpenSaved(path);
  if (!saved.ok()) return Unreadable(path, saved.status());
  AddFacts(path, {}, &*saved);
  const Facts* const facts = FactsOf(*saved);
  WatchSection section = {.title = absl::StrCat("rows ", path)};
  if (facts == nullptr) {
    section.facts.emplace_back("rows", "none that can be read now");
    return section;
  }
  section.facts.emplace_back(
      "live rows", absl::StrCat(facts->live(), " of ", facts->lanes.num_slots(),
                                " in ", facts->lanes.count, " lanes"));
  Storage& before = storages_[path];
  const int64_t written = std::accumulate(
      facts->written.begin(), facts->written.end(), int64_t{0}, SumOfCounts);
  std::string appended = absl::StrCat(written);
  if (before.looked.has_value()) {
    absl::StrAppend(&appended, ", ",
                    Rate(written, before.written,
                         absl::ToDoubleSeconds(now - *before.looked)));
  }
  section.facts.emplace_back("appended", std::move(appended));
  before.looked = now;
  before.written = written;
  section.facts.emplace_back("age, steps", absl::StrCat(facts->age()));
  if (facts->policy_versions.has_value()) {
    section.facts.emplace_back(
        "versions of rows", absl::StrCat(facts->policy_versions->first, " to ",
                                         facts->policy_versions->second));
  }
  if (facts->episodes.has_value()) {
    const Episodes& episodes = *facts->episodes;
    section.facts.emplace_back("lengths of episodes",
                               SpreadText(episodes.lengths));
    if (episodes.returns.has_value() && episodes.returns->count > 0) {
      section.facts.emplace_back("returns", SpreadText(*episodes.returns));
      const double mean = episodes.returns->mean();
      if (std::isfinite(mean)) before.returns.push_back(mean);
      if (before.returns.size() > kMostPoints) {
        before.returns.erase(before.returns.begin());
      }
    }
  }
  if (facts->priorities.has_value()) {
    section.facts.emplace_back("priorities", SpreadText(*facts->priorities));
  }
  section.facts.emplace_back("writer",
                             facts->writer.empty() ? "none" : facts->writer);
  section.line_title = "mean return of the episodes that are there";
  section.line = before.returns;
  return section;
}

std::string WatchText(const std::vector<WatchSection>& sections) {
  std::string text;
  for (const WatchSection& section : sections) {
    absl::StrAppend(&text, OneLine(section.title), "\n");
    for (const auto& [name, value] : section.facts) {
      absl::StrAppendFormat(&text, "  %-26s%s\n", OneLine(name),
                            OneLine(value));
    }
    if (section.bars.empty()) continue;
    absl::StrAppend(&text, "  ", section.bars_title, "\n");
    const int64_t most = MostOf(section);
    for (const auto& [label, count] : section.bars) {
      absl::StrAppendFormat(
          &text, "    %-16s%s %d\n", label,
          std::string(BarLength(count, most, kBarColumns), '#'), count);
    }
  }
  return text;
}

std::string WatchHtml(const std::vector<WatchSection>& sections,
                      absl::Duration every) {
  std::string page = absl::StrFormat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"refresh\" content=\"%d\"><title>rill</title><style>"
      "body{font:15px sans-serif;margin:2em}table{border-collapse:collapse}"
      "td{padding:2px 16px 2px 0}h2{font-size:17px}.bar{background:#1f77b4;"
      "height:12px}</style></head><body>\n",
      std::max<int64_t>(1, absl::ToInt64Seconds(every)));
  for (const WatchSection& section : sections) {
    absl::StrAppend(&page, "<h2>", Escaped(section.title), "</h2>\n<table>\n");
    for (const auto& [name, value] : section.facts) {
      absl::StrAppend(&page, "<tr><td>", Escaped(name), "</td><td>",
                      Escaped(value), "</td></tr>\n");
    }
    absl::StrAppend(&page, "</table>\n");
    if (!section.bars.empty()) {
      absl::StrAppend(&page, "<p>", Escaped(section.bars_title),
                      "</p>\n<table>\n");
      const int64_t most = MostOf(section);
      for (const auto& [label, count] : section.bars) {
        absl::StrAppend(&page, "<tr><td>", Escaped(label),
                        "</td><td><div class=\"bar\" style=\"width:",
                        BarLength(count, most, 400), "px\"></div></td><td>",
                        count, "</td></tr>\n");
      }
      absl::StrAppend(&page, "</table>\n");
    }
    if (section.line.size() > 1) {
      absl::StrAppend(&page, "<p>", Escaped(section.line_title), "</p>\n",
                      LineSvg(section.line));
    }
  }
  return page + "</body></html>\n";
}

}  // namespace rill::inspect
