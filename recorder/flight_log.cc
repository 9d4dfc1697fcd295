// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/flight_log.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/container/fixed_array.h"
#include "absl/crc/crc32c.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/recorder/fast_crc.h"

namespace rill {
namespace {

constexpr absl::string_view kMagic = "RILLFLOG";
constexpr uint8_t kForm = 1;
constexpr uint8_t kHasDigest = 0x80;  // Beside the kind.
constexpr size_t kCrcBytes = 4;

constexpr absl::string_view kNames[] = {
    "",        "part",    "arrival",   "cut",  "replace",    "stop",
    "failure", "write",   "end_lanes", "draw", "priorities", "patch",
    "clear",   "publish", "choice",    "end"};
static_assert(std::size(kNames) == Decision::kMaxKind + 1);

constexpr size_t kMaxVarint = 10;  // Bytes.

// Writes it there, and returns where it ends.
char* WriteVarint(uint64_t value, char* at) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}
void PutVarint(uint64_t value, std::string* bytes) {
  char varint[kMaxVarint];
  bytes->append(varint, WriteVarint(value, varint));
}

// Small numbers of either sign are few bytes.
uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

// Takes it off the front; false where it is cut, or not the shortest form.
bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes->size() && i < kMaxVarint; ++i) {
    const uint64_t byte = static_cast<uint8_t>((*bytes)[i]);
    if (i == 9 && byte > 1) return false;
    *value |= (byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    if (byte == 0 && i > 0) return false;
    bytes->remove_prefix(i + 1);
    return true;
  }
  return false;
}

char* WriteUint32(uint32_t value, char* at) {
  for (int i = 0; i < 4; ++i) *at++ = static_cast<char>(value >> (8 * i));
  return at;
}
uint32_t Uint32At(absl::string_view bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

// The checksum goes on from the record before, so that no record stands behind
// another than its own.
uint32_t ChainedCrc(uint32_t before, absl::string_view body) {
  return static_cast<uint32_t>(
      recorder_internal::ExtendCrc(absl::crc32c_t{before}, body));
}

absl::Status CheckSize(absl::string_view caller, size_t bytes) {
  if (bytes <= static_cast<size_t>(FlightEncoder::kMaxRecord)) {
    return absl::OkStatus();
  }
  return InvalidArgument(caller, ": got a record of ", bytes,
                         " bytes, want at most ", FlightEncoder::kMaxRecord);
}

// Puts length and CRC around a body.
void PutRecord(absl::string_view body, uint32_t* chain, std::string* bytes) {
  PutVarint(body.size(), bytes);
  bytes->append(body);
  *chain = ChainedCrc(*chain, body);
  char crc[kCrcBytes];
  bytes->append(crc, WriteUint32(*chain, crc));
}

// Reads a body; false where it says nothing.
bool TakeDecision(absl::string_view body, FlightEvent* event, int64_t* at_us) {
  if (body.empty()) return false;
  const uint8_t first = static_cast<uint8_t>(body[0]);
  const uint8_t kind = first & static_cast<uint8_t>(~kHasDigest);
  if (kind == 0 || kind > Decision::kMaxKind) return false;
  body.remove_prefix(1);
  uint64_t part = 0, since = 0;
  if (!TakeVarint(&body, &part) || !TakeVarint(&body, &since)) return false;
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (part > kMost || since > kMost - static_cast<uint64_t>(*at_us)) {
    return false;
  }
  FlightEvent taken;
  taken.decision.kind = static_cast<Decision::Kind>(kind);
  taken.decision.part = static_cast<int64_t>(part);
  const int64_t at = *at_us + static_cast<int64_t>(since);
  taken.at = absl::Microseconds(at);
  if ((first & kHasDigest) != 0) {
    if (body.size() < kCrcBytes) return false;
    taken.decision.digest = Uint32At(body);
    // Without one it has no place.
    if (taken.decision.digest == 0) return false;
    body.remove_prefix(kCrcBytes);
  }
  if (taken.decision.kind == Decision::Kind::kPart) {
    taken.text = std::string(body);
  } else {
    for (uint64_t number = 0; !body.empty();) {
      if (!TakeVarint(&body, &number)) return false;
      taken.decision.numbers.push_back(UnZigZag(number));
    }
  }
  *event = std::move(taken);
  *at_us = at;
  return true;
}

bool TakeText(absl::string_view* body, std::string* text) {
  uint64_t size = 0;
  if (!TakeVarint(body, &size) || size > body->size()) return false;
  *text = std::string(body->substr(0, size));
  body->remove_prefix(size);
  return true;
}

bool TakeHead(absl::string_view body, FlightHead* head) {
  uint64_t begin = 0, count = 0;
  if (!TakeVarint(&body, &begin) || !TakeText(&body, &head->program) ||
      !TakeVarint(&body, &count) || count > body.size()) {
    return false;
  }
  head->begin = absl::FromUnixMicros(UnZigZag(begin));
  head->arguments.resize(count);
  for (std::string& argument : head->arguments) {
    if (!TakeText(&body, &argument)) return false;
  }
  return body.empty();
}

}  // namespace

absl::Status FlightEncoder::Begin(const FlightHead& head, std::string* bytes) {
  std::string body;
  PutVarint(ZigZag(absl::ToUnixMicros(head.begin)), &body);
  const auto put_text = [&](absl::string_view text) {
    PutVarint(text.size(), &body);
    body.append(text.data(), text.size());
  };
  put_text(head.program);
  PutVarint(head.arguments.size(), &body);
  for (const std::string& argument : head.arguments) put_text(argument);
  RILL_RETURN_IF_ERROR(CheckSize("FlightEncoder::Begin", body.size()));
  bytes->assign(kMagic.data(), kMagic.size());
  bytes->push_back(static_cast<char>(kForm));
  chain_ = 0;
  at_us_ = 0;
  PutRecord(body, &chain_, bytes);
  return absl::OkStatus();
}

absl::Status FlightEncoder::Add(const FlightEvent& event, std::string* bytes) {
  const Decision& decision = event.decision;
  const int64_t at_us = std::max(at_us_, absl::ToInt64Microseconds(event.at));
  // As long as the record can be. The body stands behind room for its length,
  // whose bytes are known later.
  absl::FixedArray<char, 256> record(kMaxVarint *
                                         (3 + decision.numbers.size()) +
                                     event.text.size() + 1 + 2 * kCrcBytes);
  char* const body = record.data() + kMaxVarint;
  char* at = body;
  *at++ = static_cast<char>(static_cast<uint8_t>(decision.kind) |
                            (decision.digest == 0 ? 0 : kHasDigest));
  at = WriteVarint(static_cast<uint64_t>(decision.part), at);
  at = WriteVarint(static_cast<uint64_t>(at_us - at_us_), at);
  if (decision.digest != 0) at = WriteUint32(decision.digest, at);
  at = std::copy(event.text.begin(), event.text.end(), at);
  for (const int64_t number : decision.numbers) {
    at = WriteVarint(ZigZag(number), at);
  }
  const size_t size = at - body;
  RILL_RETURN_IF_ERROR(CheckSize("FlightEncoder::Add", size));
  chain_ = ChainedCrc(chain_, absl::string_view(body, size));
  at = WriteUint32(chain_, at);
  char length[kMaxVarint];
  char* const length_end = WriteVarint(size, length);
  char* const begin = body - (length_end - length);
  std::copy(length, length_end, begin);
  bytes->assign(begin, at);
  at_us_ = at_us;
  return absl::OkStatus();
}

absl::StatusOr<FlightDecoder> FlightDecoder::Create(absl::string_view bytes) {
  constexpr absl::string_view kCaller = "FlightDecoder::Create";
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return FailedPrecondition(kCaller, ": got ", bytes.size(),
                              " bytes that do not begin with \"", kMagic,
                              "\", want a flight log");
  }
  if (bytes.size() > kMagic.size() &&
      static_cast<uint8_t>(bytes[kMagic.size()]) != kForm) {
    return FailedPrecondition(kCaller, ": form: got ",
                              static_cast<uint8_t>(bytes[kMagic.size()]),
                              ", want ", kForm, "; a newer release wrote it");
  }
  FlightDecoder decoder(bytes);
  decoder.position_ = static_cast<int64_t>(kMagic.size()) + 1;
  absl::string_view body;
  if (bytes.size() <= kMagic.size() || !decoder.NextBody(&body) ||
      !TakeHead(body, &decoder.head_)) {
    return DataLoss(kCaller,
                    ": got a head that is cut or changed, want a "
                    "whole one; nothing behind it can be read");
  }
  return decoder;
}

bool FlightDecoder::NextBody(absl::string_view* body) {
  absl::string_view rest = bytes_.substr(position_);
  uint64_t size = 0;
  // A length of 0 is space that is reserved for more.
  if (!TakeVarint(&rest, &size) || size == 0 ||
      size > static_cast<uint64_t>(FlightEncoder::kMaxRecord) ||
      rest.size() < size + kCrcBytes) {
    return false;
  }
  const uint32_t crc = ChainedCrc(chain_, rest.substr(0, size));
  if (crc != Uint32At(rest.substr(size))) return false;
  *body = rest.substr(0, size);
  chain_ = crc;
  position_ = body->data() + size + kCrcBytes - bytes_.data();
  return true;
}

bool FlightDecoder::Next(FlightEvent* event) {
  const int64_t position = position_;
  const uint32_t chain = chain_;
  absl::string_view body;
  if (!NextBody(&body)) return false;
  if (TakeDecision(body, event, &at_us_)) return true;
  // A body that says nothing ends the log too.
  position_ = position;
  chain_ = chain;
  return false;
}

int64_t FlightDecoder::torn_bytes() const {
  const absl::string_view rest = bytes_.substr(position_);
  const size_t last = rest.find_last_not_of('\0');
  return last == absl::string_view::npos ? 0 : static_cast<int64_t>(last) + 1;
}

absl::string_view FlightKindName(Decision::Kind kind) {
  return kNames[static_cast<uint8_t>(kind)];
}

std::string FlightEventText(const FlightEvent& event) {
  const Decision& decision = event.decision;
  return absl::StrCat(FlightKindName(decision.kind), " of part ", decision.part,
                      event.text.empty() ? "" : ": ", event.text,
                      decision.numbers.empty() ? "" : ": ",
                      absl::StrJoin(decision.numbers, " "),
                      decision.digest == 0 ? ""
                                           : absl::StrFormat(" (digest 0x%08x)",
                                                             decision.digest));
}

}  // namespace rill
