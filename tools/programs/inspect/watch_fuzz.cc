// SPDX-License-Identifier: Apache-2.0
// The input is events of a log, with any numbers, and bytes as a run's curve.
// Their sums are counts. They become text and a page, each line within a bound.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/flow/decision_log.h"
#include "rill/recorder/flight_log.h"
#include "rill/tools/fuzzing/fuzz_input.h"
#include "rill/tools/programs/inspect/flight_summary.h"
#include "rill/tools/programs/inspect/watch.h"

namespace rill::inspect {
namespace {

FlightEvent TakeEvent(FuzzInput* input) {
  FlightEvent event;
  event.decision.kind =
      static_cast<Decision::Kind>(input->TakeSmall(1, Decision::kMaxKind));
  event.decision.part = input->TakeHostile() & INT64_MAX;
  for (int64_t i = input->TakeSmall(0, 8); i > 0; --i) {
    event.decision.numbers.push_back(input->TakeHostile());
  }
  // A part has a text in place of numbers.
  if (event.decision.kind == Decision::Kind::kPart) {
    event.decision.numbers.clear();
    event.text = std::string(input->TakeText());
  }
  event.at = absl::Microseconds(input->TakeHostile());
  return event;
}

void CheckSection(const WatchSection& section) {
  RILL_FUZZ_CHECK(section.facts.size() <= kMostColumns);
  for (const auto& [label, count] : section.bars) RILL_FUZZ_CHECK(count >= 0);
  const std::string text = WatchText({section});
  RILL_FUZZ_CHECK(!absl::StrContains(text, "\x1b"));
  RILL_FUZZ_CHECK(
      absl::EndsWith(WatchHtml({section}, absl::Seconds(1)), "</html>\n"));
}

void CheckLog(FuzzInput input) {
  FlightEncoder encoder;
  std::string log, bytes;
  RILL_FUZZ_CHECK(encoder.Begin({}, &log).ok());
  FlightSummary summary, before;
  while (!input.is_empty()) {
    const FlightEvent event = TakeEvent(&input);
    summary.Add(event);
    if (summary.events() == 2) before = summary;
    RILL_FUZZ_CHECK(encoder.Add(event, &bytes).ok());
    log += bytes;
  }
  for (uint8_t kind = 1; kind <= Decision::kMaxKind; ++kind) {
    const auto count = summary.CountOf(static_cast<Decision::Kind>(kind));
    RILL_FUZZ_CHECK(count.events >= 0 && count.items >= 0);
  }
  for (const auto& [key, worker] : summary.workers()) {
    RILL_FUZZ_CHECK(worker.steps >= 0 && worker.age.count >= 0);
  }
  CheckSection(LogSection("log", summary, before));
  RILL_FUZZ_CHECK(TimelineText(log, /*all_events=*/true).ok());
}

}  // namespace
}  // namespace rill::inspect

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::FuzzInput input(data, size);
  if (input.TakeSmall(0, 1) == 0) {
    rill::inspect::CheckSection(
        rill::inspect::RunSection("run", input.TakeRest()));
  } else {
    rill::inspect::CheckLog(input);
  }
  return 0;
}
