// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_RECORDER_FLIGHT_LOG_H_
#define RILL_RECORDER_FLIGHT_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/flow/decision_log.h"

namespace rill {

// The bytes of a flight log (docs/formats/flight_log.md): a head, then a record
// for each event, in order. They are pure functions of bytes.

// How a run was started.
struct FlightHead {
  absl::Time begin = absl::UnixEpoch();     // In microseconds.
  std::string program = {};                 // Its file.
  std::vector<std::string> arguments = {};  // Without the program's name.

  friend bool operator==(const FlightHead&, const FlightHead&) = default;
};

struct FlightEvent {
  Decision decision = {};
  std::string text = {};                     // Of a kPart: what joins.
  absl::Duration at = absl::ZeroDuration();  // Since the beginning, in us.

  friend bool operator==(const FlightEvent&, const FlightEvent&) = default;
};

// Makes the bytes, which the caller writes down one behind the other.
// Thread-safety: thread-compatible.
// Cost: a CRC32C of the bytes; allocates nothing once the text is long enough.
class FlightEncoder {
 public:
  // Replaces `bytes` by the head's. INVALID_ARGUMENT where it takes more than
  // kMaxRecord.
  absl::Status Begin(const FlightHead& head, std::string* bytes);
  // Replaces `bytes` by the event's. INVALID_ARGUMENT as Begin. An `at` before
  // the last event's becomes that one's.
  absl::Status Add(const FlightEvent& event, std::string* bytes);

  static constexpr int64_t kMaxRecord = int64_t{1} << 20;

 private:
  uint32_t chain_ = 0;  // The CRC of the record before.
  int64_t at_us_ = 0;
};

// Reads them. A log that was cut anywhere, or has zeros or other bytes behind
// its last whole record, is a log up to there.
// Thread-safety: thread-compatible. Cost: a CRC32C of the bytes.
class FlightDecoder {
 public:
  // `bytes` are all of a file, and outlive it. DATA_LOSS where the head is not
  // whole; FAILED_PRECONDITION where it is none, or of a newer form.
  static absl::StatusOr<FlightDecoder> Create(absl::string_view bytes);

  const FlightHead& head() const { return head_; }
  // Goes on in other bytes, which begin with those that were read: a file that
  // has grown.
  void Extend(absl::string_view bytes) { bytes_ = bytes; }
  // The next event; false where there is none, and `event` is as before.
  bool Next(FlightEvent* event);
  // Where the records that were read end.
  int64_t position() const { return position_; }
  // Behind the last record: bytes that are not zero, up to the last of them.
  int64_t torn_bytes() const;

 private:
  explicit FlightDecoder(absl::string_view bytes) : bytes_(bytes) {}

  // The body of the record at position_; false where none is whole.
  bool NextBody(absl::string_view* body);

  absl::string_view bytes_;
  FlightHead head_;
  int64_t position_ = 0;
  uint32_t chain_ = 0;
  int64_t at_us_ = 0;
};

// The name of a kind, as timelines and errors say it: "arrival".
absl::string_view FlightKindName(Decision::Kind kind);

// An event for people: "arrival of part 0: 3 1 16 256 16 4 (digest
// 0x1234abcd)".
std::string FlightEventText(const FlightEvent& event);

}  // namespace rill

#endif  // RILL_RECORDER_FLIGHT_LOG_H_
