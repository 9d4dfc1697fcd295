// SPDX-License-Identifier: Apache-2.0
// Any bytes as a flight log, with its checksums put right. All that is read
// lies in the bytes, can be written again, and then reads the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/flow/decision_log.h"
#include "rill/recorder/flight_log.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

// Walks the records by their lengths, of one or two bytes.
void PutRight(std::string* bytes) {
  uint32_t chain = 0;
  for (size_t at = 9; at + 1 < bytes->size();) {
    size_t size = static_cast<uint8_t>((*bytes)[at++]);
    if (size >= 0x80) {
      size = (size & 0x7f) |
             static_cast<size_t>(static_cast<uint8_t>((*bytes)[at++])) << 7;
    }
    if (size == 0 || at + size + 4 > bytes->size()) return;
    chain = static_cast<uint32_t>(absl::ExtendCrc32c(
        absl::crc32c_t{chain}, absl::string_view(*bytes).substr(at, size)));
    at += size;
    for (int i = 0; i < 4; ++i) {
      (*bytes)[at++] = static_cast<char>(chain >> (8 * i));
    }
  }
}

void Check(std::string input) {
  PutRight(&input);
  absl::StatusOr<FlightDecoder> decoder = FlightDecoder::Create(input);
  if (!decoder.ok()) {
    RILL_FUZZ_CHECK(absl::IsDataLoss(decoder.status()) ||
                    absl::IsFailedPrecondition(decoder.status()));
    return;
  }
  std::vector<FlightEvent> events;
  for (FlightEvent event; decoder->Next(&event);) {
    RILL_FUZZ_CHECK(!FlightEventText(event).empty());
    if (event.decision.kind == Decision::Kind::kArrival) {
      const auto arrival = Arrival::FromNumbers(event.decision.numbers);
      RILL_FUZZ_CHECK(!arrival.ok() ||
                      arrival->ToNumbers() == event.decision.numbers);
    }
    if (event.decision.kind == Decision::Kind::kPriorities) {
      const auto counts = PriorityCounts::FromNumbers(event.decision.numbers);
      RILL_FUZZ_CHECK(!counts.ok() ||
                      counts->ToNumbers() == event.decision.numbers);
    }
    events.push_back(event);
  }
  RILL_FUZZ_CHECK(decoder->position() + decoder->torn_bytes() <=
                  static_cast<int64_t>(input.size()));
  FlightEncoder encoder;
  std::string again, bytes;
  RILL_FUZZ_CHECK(encoder.Begin(decoder->head(), &again).ok());
  for (const FlightEvent& event : events) {
    RILL_FUZZ_CHECK(encoder.Add(event, &bytes).ok());
    again += bytes;
  }
  absl::StatusOr<FlightDecoder> same = FlightDecoder::Create(again);
  RILL_FUZZ_CHECK(same.ok() && same->head() == decoder->head());
  FlightEvent event;
  for (const FlightEvent& wanted : events) {
    RILL_FUZZ_CHECK(same->Next(&event) && event == wanted);
  }
  RILL_FUZZ_CHECK(!same->Next(&event) && same->torn_bytes() == 0);
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::Check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
