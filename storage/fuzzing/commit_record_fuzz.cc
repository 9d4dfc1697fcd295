// SPDX-License-Identifier: Apache-2.0
// Reads bytes as commit records, as they are and with the checksums put right.
// An accepted record lies within bounds, a live reader finds the same, and a
// writer goes on from there.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::storage_internal {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int64_t kMarksOffset = 128;  // docs/formats/storage_directory.md

void CheckBounds(const CommitState& state, const Lanes& lanes) {
  RILL_FUZZ_CHECK(static_cast<int64_t>(state.marks.size()) == lanes.count);
  for (const LaneMark& mark : state.marks) {
    RILL_FUZZ_CHECK(0 <= mark.first_live && mark.first_live <= mark.written);
    RILL_FUZZ_CHECK(mark.written <= kMaxWritten);
  }
  for (const LaneSteps& append : state.in_flight) {
    RILL_FUZZ_CHECK(append.steps > 0 && append.first >= 0 && append.count >= 0);
    RILL_FUZZ_CHECK(append.first <= lanes.count &&
                    append.count <= lanes.count - append.first);
  }
}

void Try(Bytes bytes, const Lanes& lanes) {
  const auto read = CommitRecord::Read(bytes, lanes);
  CommitView view;
  const bool is_live = CommitRecord::ReadLive(bytes, lanes, &view).ok();
  if (!read.ok()) return;
  RILL_FUZZ_CHECK(is_live);
  RILL_FUZZ_CHECK(view.number > 0);
  CheckBounds(read->state, lanes);
  CheckBounds(view.state, lanes);
  const CommitState settled = CommitRecord::Settle(read->state, lanes);
  CheckBounds(settled, lanes);
  RILL_FUZZ_CHECK(settled.in_flight.empty());

  CommitRecord record(absl::MakeSpan(bytes), lanes, settled.marks);
  const auto reopened = CommitRecord::Read(bytes, lanes);
  RILL_FUZZ_CHECK(reopened.ok() && reopened->state == settled);
  CommitView after;
  RILL_FUZZ_CHECK(CommitRecord::ReadLive(bytes, lanes, &after).ok());
  RILL_FUZZ_CHECK(after.generation != view.generation);
  RILL_FUZZ_CHECK(!after.is_in_place() && after.state == settled);
  RILL_FUZZ_CHECK(CommitRecord::IsNewest(bytes, lanes, after.number));
  if (settled.marks[0].written == kMaxWritten) return;
  record.Announce({.first = 0, .count = 1, .steps = 1});
  record.Commit({.first = 0, .count = 1, .steps = 1});
  const auto written = CommitRecord::Read(bytes, lanes);
  RILL_FUZZ_CHECK(written.ok() && written->state.in_flight.empty());
  RILL_FUZZ_CHECK(written->state.marks[0].written ==
                  settled.marks[0].written + 1);
  RILL_FUZZ_CHECK(!CommitRecord::IsNewest(bytes, lanes, after.number));
}

template <typename T>
void Put(T value, int64_t offset, std::byte* slot) {
  std::memcpy(slot + offset, &value, sizeof(value));
}

// A slot whose checksums fit, with whatever values.
void MakeSlot(FuzzInput* input, const Lanes& lanes, std::byte* slot) {
  std::memcpy(slot, "RILLREC1", 8);
  Put(static_cast<uint64_t>(input->TakeHostile()), 8, slot);
  Put(lanes.count, 16, slot);
  Put(lanes.capacity, 24, slot);
  for (int64_t i = 0; i < 3; ++i) Put(input->TakeHostile(), 32 + 8 * i, slot);
  uint64_t sum = 0;
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const int64_t written = input->TakeHostile();
    const int64_t first =
        input->TakeSmall(0, 1) == 0 ? 0 : input->TakeHostile();
    Put(written, kMarksOffset + 16 * lane, slot);
    Put(first, kMarksOffset + 16 * lane + 8, slot);
    uint64_t x =
        static_cast<uint64_t>(written) * 0x9E3779B97F4A7C15u +
        std::rotl(static_cast<uint64_t>(first), 32) * 0xC2B2AE3D27D4EB4Fu +
        (static_cast<uint64_t>(lane) + 1) * 0x165667B19E3779F9u;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
    sum += x ^ (x >> 32);
  }
  Put(sum, 56, slot);
  Put(static_cast<uint64_t>(input->TakeHostile()), 64, slot);
  const char* const text = reinterpret_cast<const char*>(slot);
  absl::crc32c_t crc = absl::ComputeCrc32c(absl::string_view(text, 72));
  const auto num_more = static_cast<uint32_t>(input->TakeSmall(0, 3));
  if (num_more != 0) {
    Put(num_more, 76, slot);
    for (int64_t i = 0; i < 6; ++i) Put(input->TakeHostile(), 80 + 8 * i, slot);
    crc = absl::ExtendCrc32c(crc, absl::string_view(text + 76, 52));
  }
  Put(static_cast<uint32_t>(crc), 72, slot);
}

}  // namespace
}  // namespace rill::storage_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rill::storage_internal;  // NOLINT
  rill::FuzzInput input(data, size);
  rill::Lanes lanes;
  lanes.count = input.TakeSmall(1, 4);
  lanes.capacity = std::max<int64_t>(input.TakeHostile(), 1);
  const int64_t bytes = CommitRecord::SizeBytes(lanes.count);
  Bytes record(bytes);
  if (input.TakeSmall(0, 3) == 0) {
    const auto rest = input.TakeBytes(bytes);
    if (!rest.empty()) std::memcpy(record.data(), rest.data(), rest.size());
  } else {
    MakeSlot(&input, lanes, record.data());
    if (input.TakeSmall(0, 1) == 1) {
      MakeSlot(&input, lanes, record.data() + bytes / 2);
    }
    // A byte of any place is another.
    if (input.TakeSmall(0, 1) == 1) {
      record[input.Take<uint16_t>() % bytes] ^=
          std::byte{input.Take<uint8_t>()};
    }
  }
  Try(record, lanes);
  return 0;
}
