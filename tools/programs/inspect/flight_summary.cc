// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/flight_summary.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tools/programs/inspect/text_report.h"

namespace rill::inspect {
namespace {

using Kind = Decision::Kind;

constexpr int kColumns = 72;

// The rows of an event, 0 where its numbers say nothing that can be.
int64_t ItemsOf(const Decision& decision) {
  constexpr int64_t kMostRows = int64_t{1} << 48;
  const std::vector<int64_t>& numbers = decision.numbers;
  const auto at_most = [](int64_t number, int64_t most) {
    return std::clamp<int64_t>(number, 0, most);
  };
  switch (decision.kind) {
    case Kind::kWrite:
      return numbers.size() == 3
                 ? at_most(numbers[1], 1 << 24) * at_most(numbers[2], 1 << 24)
                 : 0;
    case Kind::kDraw:
    case Kind::kPriorities:
    case Kind::kPatch:
      return numbers.empty() ? 0 : at_most(numbers[0], kMostRows);
    default:
      return 0;
  }
}

// The lines of a timeline: a worker's, or of one kind of a part.
struct LineKey {
  int64_t part = 0;
  int64_t worker = -1;
  Kind kind = Kind::kEnd;
  friend auto operator<=>(const LineKey&, const LineKey&) = default;
};

bool IsOfWorker(Kind kind) {
  return kind == Kind::kArrival || kind == Kind::kReplace || kind == Kind::kCut;
}

// False of events that have no line.
bool KeyOf(const Decision& decision, LineKey* key) {
  if (decision.kind == Kind::kPart || decision.kind == Kind::kEnd) return false;
  if (!IsOfWorker(decision.kind)) {
    *key = {.part = decision.part, .kind = decision.kind};
    return true;
  }
  if (decision.numbers.empty()) return false;
  *key = {.part = decision.part,
          .worker = decision.numbers[0],
          .kind = Kind::kArrival};
  return true;
}

struct Line {
  std::vector<int64_t> events = std::vector<int64_t>(kColumns);
  std::vector<bool> has_end = std::vector<bool>(kColumns);

  std::string Text() const {
    std::string text;
    for (int i = 0; i < kColumns; ++i) {
      if (has_end[i]) {
        text += 'X';
      } else if (events[i] == 0) {
        text += ' ';
      } else {
        text += events[i] < 10 ? static_cast<char>('0' + events[i]) : '+';
      }
    }
    return text;
  }
};

std::string WorkerText(const FlightSummary::Worker& worker) {
  std::string text =
      absl::StrFormat("%d batches, %d steps", worker.batches, worker.steps);
  if (worker.age.count > 0) {
    absl::StrAppendFormat(&text, ", %.1f versions behind (most %.0f)",
                          worker.age.mean(), worker.age.max);
  }
  if (worker.ends == 0) return text;
  absl::StrAppendFormat(
      &text, ", %d ends: %s", worker.ends,
      absl::StrJoin(worker.statuses, ", ", [](std::string* out, const auto& s) {
        absl::StrAppend(out, EndText(s.first), " x ", s.second);
      }));
  return text;
}

std::string SecondsText(absl::Duration time) {
  return absl::StrFormat("%.3f s", absl::ToDoubleSeconds(time));
}

std::string HeadText(const FlightDecoder& decoder,
                     const FlightSummary& summary) {
  const FlightHead& head = decoder.head();
  std::string end =
      summary.has_ended() ? "by itself" : "none: it crashed, or goes on";
  if (decoder.torn_bytes() > 0) {
    absl::StrAppend(&end, "; ", decoder.torn_bytes(),
                    " bytes behind the last event are no whole one");
  }
  std::string text = absl::StrCat(
      "flight log, begun ", absl::FormatTime(head.begin, absl::UTCTimeZone()),
      "\n  run     ",
      OneLine(absl::StrCat(head.program, head.arguments.empty() ? "" : " ",
                           absl::StrJoin(head.arguments, " "))),
      "\n  length  ", SecondsText(summary.length()), ", ", summary.events(),
      " events in ", decoder.position(), " bytes, ",
      absl::StrFormat("%.1f an event",
                      static_cast<double>(decoder.position()) /
                          std::max<double>(1, summary.events())),
      "\n  end     ", end, "\n");
  for (size_t i = 0; i < summary.parts().size(); ++i) {
    absl::StrAppend(&text, "  part ", i, "  ", OneLine(summary.parts()[i]),
                    "\n");
  }
  return text;
}

std::string LineText(const LineKey& key, const Line& line,
                     const FlightSummary& summary) {
  std::string name, total;
  if (key.worker >= 0) {
    name = absl::StrCat(key.part, " worker ", key.worker);
    const auto found = summary.workers().find({key.part, key.worker});
    if (found != summary.workers().end()) total = WorkerText(found->second);
  } else {
    name = absl::StrCat(key.part, " ", FlightKindName(key.kind));
    const auto found = summary.counts().find({key.part, key.kind});
    if (found != summary.counts().end()) {
      total = absl::StrCat(found->second.events);
      if (found->second.items > 0) {
        absl::StrAppend(&total, " of ", found->second.items, " rows");
      }
    }
  }
  return absl::StrFormat("  %-14s|%s| %s\n", name, line.Text(), total);
}

}  // namespace

std::string EndText(int64_t status) {
  const int number = static_cast<int>(status);
  if (number == -1) return "no process";
  if (WIFSIGNALED(number)) return absl::StrCat("signal ", WTERMSIG(number));
  return absl::StrCat("exit status ", WEXITSTATUS(number));
}

void FlightSummary::AddArrival(const FlightEvent& event) {
  const auto arrival = Arrival::FromNumbers(event.decision.numbers);
  if (!arrival.ok()) return;
  waited_ += event.at - length_;
  Worker* const worker = WorkerOf(event.decision.part, arrival->worker);
  if (worker == nullptr) return;
  ++worker->batches;
  worker->steps = SumOfCounts(worker->steps, arrival->steps);
  for (const Arrival::Versions& run : arrival->versions) {
    worker->age.Add(
        static_cast<double>(newest_) - static_cast<double>(run.version),
        run.steps);
  }
}

void FlightSummary::AddEnd(const FlightEvent& event) {
  const std::vector<int64_t>& numbers = event.decision.numbers;
  if (numbers.size() != 4) return;
  Worker* const worker = WorkerOf(event.decision.part, numbers[0]);
  if (worker == nullptr) return;
  ++worker->ends;
  if (worker->statuses.size() < kMostStatuses ||
      worker->statuses.contains(numbers[2])) {
    ++worker->statuses[numbers[2]];
  }
}

FlightSummary::Worker* FlightSummary::WorkerOf(int64_t part, int64_t number) {
  const auto found = workers_.find({part, number});
  if (found != workers_.end()) return &found->second;
  return workers_.size() < kMost ? &workers_[{part, number}] : nullptr;
}

void FlightSummary::Add(const FlightEvent& event) {
  const Decision& decision = event.decision;
  const std::vector<int64_t>& numbers = decision.numbers;
  ++events_;
  switch (decision.kind) {
    case Kind::kPart:
      if (parts_.size() < kMost) parts_.push_back(event.text);
      break;
    case Kind::kArrival:
      AddArrival(event);
      break;
    case Kind::kReplace:
      AddEnd(event);
      break;
    case Kind::kPriorities:
      if (auto update = PriorityCounts::FromNumbers(numbers); update.ok()) {
        updates_.push_back(*std::move(update));
        if (updates_.size() > kUpdates) updates_.pop_front();
      }
      break;
    case Kind::kPublish:
      if (!numbers.empty()) newest_ = numbers[0];
      break;
    case Kind::kEnd:
      has_ended_ = true;
      break;
    default:
      break;
  }
  length_ = event.at;
  const std::pair key(decision.part, decision.kind);
  if (counts_.size() >= kMost && !counts_.contains(key)) return;
  Count& count = counts_[key];
  ++count.events;
  count.items = SumOfCounts(count.items, ItemsOf(decision));
}

FlightSummary::Count FlightSummary::CountOf(Decision::Kind kind) const {
  Count all;
  for (const auto& [key, count] : counts_) {
    if (key.second != kind) continue;
    all.events += count.events;
    all.items = SumOfCounts(all.items, count.items);
  }
  return all;
}

std::map<int64_t, int64_t> FlightSummary::Priorities() const {
  std::map<int64_t, int64_t> rows;
  for (const PriorityCounts& update : updates_) {
    if (update.zeros > 0) rows[kZero] += update.zeros;
    for (size_t i = 0; i < update.counts.size(); ++i) {
      rows[update.first + static_cast<int64_t>(i)] += update.counts[i];
    }
  }
  return rows;
}

Spread FlightSummary::Ages() const {
  Spread all;
  for (const auto& [key, worker] : workers_) {
    const Spread& age = worker.age;
    if (age.count == 0) continue;
    all.min = all.count == 0 ? age.min : std::min(all.min, age.min);
    all.max = all.count == 0 ? age.max : std::max(all.max, age.max);
    all.count = SumOfCounts(all.count, age.count);
    all.total += age.total;
  }
  return all;
}

absl::StatusOr<std::string> TimelineText(absl::string_view log,
                                         bool all_events) {
  RILL_ASSIGN_OR_RETURN(FlightDecoder decoder, FlightDecoder::Create(log));
  FlightSummary summary;
  FlightEvent event;
  while (decoder.Next(&event)) summary.Add(event);
  std::string text = HeadText(decoder, summary);

  // Once more, as columns are known now.
  const int64_t length =
      std::max<int64_t>(absl::ToInt64Microseconds(summary.length()), 1);
  std::map<LineKey, Line> lines;
  std::string events;
  RILL_ASSIGN_OR_RETURN(decoder, FlightDecoder::Create(log));
  while (decoder.Next(&event)) {
    const double at = static_cast<double>(absl::ToInt64Microseconds(event.at)) /
                      static_cast<double>(length);
    if (all_events) {
      absl::StrAppend(&events, "  ", SecondsText(event.at), "  ",
                      OneLine(FlightEventText(event)), "\n");
    }
    LineKey key;
    if (!KeyOf(event.decision, &key)) continue;
    if (lines.size() >= FlightSummary::kMost && !lines.contains(key)) continue;
    Line& line = lines[key];
    const int column = std::min(static_cast<int>(at * kColumns), kColumns - 1);
    if (event.decision.kind == Kind::kReplace) {
      line.has_end[column] = true;
    } else if (event.decision.kind != Kind::kCut) {
      ++line.events[column];
    }
  }
  for (const auto& [key, line] : lines) text += LineText(key, line, summary);
  absl::StrAppendFormat(
      &text,
      "  a column is %s; a digit counts events, + is ten or more, X is a "
      "worker's end\n",
      SecondsText(summary.length() / kColumns));
  return text + events;
}

}  // namespace rill::inspect
