// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/inspect/sampler_facts.h"

#include <cstdint>
#include <optional>

#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/prioritized/priority_state.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/state_bytes.h"

namespace rill::inspect {
namespace {

using samplers_internal::StateReader;

// The text before the selector's part.
enum class UnitPart { kNothing, kSets, kSetsAndPeriods };

// The slots that hold rows, as they are and where they are.
absl::StatusOr<MovedRows> ReadLiveRows(StateReader* reader,
                                       const Lanes& lanes) {
  MovedRows rows = {.from = lanes};
  RILL_ASSIGN_OR_RETURN(const int64_t count, reader->Int());
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, reader->Int());
  if (count != lanes.count || capacity != lanes.capacity) {
    return reader->DoesNotFit("lanes: got others than the buffer's");
  }
  RILL_ASSIGN_OR_RETURN(const int64_t runs, reader->Int());
  Slot slot = 0;
  for (int64_t i = 0; i < runs; ++i) {
    RILL_ASSIGN_OR_RETURN(const int64_t slots, reader->Int());
    RILL_ASSIGN_OR_RETURN(const int64_t generation, reader->Int());
    if (slots < 1 || slots > lanes.num_slots() - slot) {
      return reader->Damaged("runs of generations do not cover the slots");
    }
    if (generation >= 0) rows.ranges.push_back({slot, slot, slots});
    slot += slots;
  }
  return rows;
}

// As docs/formats/replay_buffer.md has the parts of units; nothing of them is
// shown.
absl::Status SkipUnit(UnitPart part, StateReader* reader) {
  if (part == UnitPart::kNothing) return absl::OkStatus();
  for (int i = 0; i < 2; ++i) RILL_RETURN_IF_ERROR(reader->Int().status());
  RILL_RETURN_IF_ERROR(reader->SkipList());
  RILL_ASSIGN_OR_RETURN(const int64_t sets, reader->Int());
  for (int64_t i = 0; i < sets; ++i) RILL_RETURN_IF_ERROR(reader->SkipList());
  if (part == UnitPart::kSets) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(reader->Int().status());
  RILL_RETURN_IF_ERROR(reader->SkipList(/*ints=*/2));
  return reader->SkipList();
}

// The priorities where the rest of the state is just those.
absl::StatusOr<Spread> ReadSelector(UnitPart part, const MovedRows& rows,
                                    StateReader reader) {
  RILL_RETURN_IF_ERROR(SkipUnit(part, &reader));
  RILL_ASSIGN_OR_RETURN(const double alpha, reader.Double());
  RILL_ASSIGN_OR_RETURN(const double beta, reader.Double());
  RILL_ASSIGN_OR_RETURN(const double largest, reader.Double());
  // Bytes of another unit seldom look like these three numbers.
  if (!(alpha >= 0 && beta >= 0 && (largest >= 0 || largest == -1))) {
    return reader.Damaged("got no exponents and largest priority");
  }
  Spread priorities;
  RILL_RETURN_IF_ERROR(samplers_internal::LoadMovedPriorities(
      &reader, rows, [&](Slot, float priority) { priorities.Add(priority); }));
  RILL_RETURN_IF_ERROR(reader.Finish());
  return priorities;
}

}  // namespace

absl::Status AddPriorities(const std::string& path, const Manifest& manifest,
                           const Lanes& lanes, Facts* facts) {
  RILL_ASSIGN_OR_RETURN(const std::string sampler, manifest.Text("sampler"));
  RILL_ASSIGN_OR_RETURN(const std::string bytes,
                        ReadFile(JoinPath(path, "sampler.state")));
  absl::StatusOr<StateReader> reader =
      StateReader::Open(sampler, /*max_version=*/1, bytes);
  // A newer version is no damage, only not known here.
  if (absl::IsFailedPrecondition(reader.status())) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(reader.status());
  RILL_ASSIGN_OR_RETURN(const MovedRows rows, ReadLiveRows(&*reader, lanes));
  // The state does not say of which unit and selector it is: a prioritized one
  // of one of these units fits to the last byte, or it is of another.
  // `reader` is copied for each try, and stays where the unit begins.
  for (const UnitPart part :
       {UnitPart::kNothing, UnitPart::kSets, UnitPart::kSetsAndPeriods}) {
    const absl::StatusOr<Spread> priorities = ReadSelector(part, rows, *reader);
    if (!priorities.ok()) continue;
    facts->priorities = *priorities;
    break;
  }
  return absl::OkStatus();
}

}  // namespace rill::inspect
