// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/slot_array_state.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {
namespace {

template <typename T>
struct Run {
  Slot first = 0;
  int64_t count = 0;
  T value = T();
  int64_t step = 0;  // -1, 0 or 1: then a double is exact on every machine.

  // Never a sum along the run, which would round.
  T At(int64_t i) const {
    return step == 0 ? value : value + static_cast<T>(i * step);
  }

  bool Add(Slot slot, T next) {
    if (slot != first + count) return false;
    // The second value says whether the run counts, and in which direction.
    if (count == 1 && IsCounting()) {
      step = next == value + 1 ? 1 : next == value - 1 ? -1 : 0;
    }
    if (At(count) != next) return false;
    ++count;
    return true;
  }

  // A whole number, far from where those of T end.
  bool IsCounting() const {
    constexpr T kMost = static_cast<T>(int64_t{1} << 52);
    return value > -kMost && value < kMost &&
           value == static_cast<T>(static_cast<int64_t>(value));
  }
};

void WriteValue(double value, StateWriter* writer) { writer->Double(value); }
void WriteValue(int64_t value, StateWriter* writer) { writer->Int(value); }

absl::Status ReadValue(StateReader* reader, double* value) {
  RILL_ASSIGN_OR_RETURN(*value, reader->Double());
  if (std::isfinite(*value)) return absl::OkStatus();
  return reader->Damaged(
      absl::StrCat("value of a slot: got ", *value, ", want a finite one"));
}
absl::Status ReadValue(StateReader* reader, int64_t* value) {
  RILL_ASSIGN_OR_RETURN(*value, reader->Int());
  return absl::OkStatus();
}

}  // namespace

template <typename T>
void SaveSlotArray(const SlotArray<T>& array, StateWriter* writer) {
  std::vector<Run<T>> runs;
  for (Slot slot = array.NextValue(0); slot < array.num_slots();
       slot = array.NextValue(slot + 1)) {
    const T value = array.Get(slot);
    // Values of 0 are those of slots without memory and are not saved.
    if (value == T()) continue;
    if (!runs.empty() && runs.back().Add(slot, value)) continue;
    runs.push_back({.first = slot, .count = 1, .value = value, .step = 0});
  }
  writer->Int(static_cast<int64_t>(runs.size()));
  for (const Run<T>& run : runs) {
    writer->Int(run.first);
    writer->Int(run.count);
    WriteValue(run.value, writer);
    writer->Int(run.step);
  }
}

template <typename T>
absl::StatusOr<SlotArray<T>> LoadSlotArray(const UsedSlots& used,
                                           StateReader* reader) {
  const int64_t num_slots = used.lanes().num_slots();
  SlotArray<T> array;
  array.Reset(num_slots);
  RILL_ASSIGN_OR_RETURN(const int64_t num_runs, reader->Int());
  if (num_runs < 0) {
    return reader->Damaged(
        absl::StrCat("runs of values: got ", num_runs, ", want >= 0"));
  }
  Slot end = 0;  // Of the run before.
  for (int64_t i = 0; i < num_runs; ++i) {
    Run<T> run;
    RILL_ASSIGN_OR_RETURN(run.first, reader->Int());
    RILL_ASSIGN_OR_RETURN(run.count, reader->Int());
    RILL_RETURN_IF_ERROR(ReadValue(reader, &run.value));
    RILL_ASSIGN_OR_RETURN(run.step, reader->Int());
    if (run.step != 0 && (run.step > 1 || run.step < -1 || !run.IsCounting())) {
      return reader->Damaged(absl::StrCat("run ", i, " of values: got a step ",
                                          "of ", run.step, ", want 0"));
    }
    // Checked before anything takes memory for a number that a file names.
    if (run.first < end || run.count < 1 || run.first > num_slots ||
        run.count > num_slots - run.first) {
      return reader->Damaged(absl::StrCat(
          "run ", i, " of values: got ", run.count, " slots from ", run.first,
          ", want some in [", end, ", ", num_slots, ")"));
    }
    if (!used.Contains({.first = run.first, .count = run.count})) {
      return reader->DoesNotFit(absl::StrCat(
          "run ", i, " of values: got ", run.count, " slots from ", run.first,
          ", want slots that have held a row; load after the storage has got "
          "the rows of the save"));
    }
    end = run.first + run.count;
    for (int64_t k = 0; k < run.count; ++k) {
      const T value = run.At(k);
      if (value != T()) array.At(run.first + k) = value;
    }
  }
  return array;
}

template void SaveSlotArray(const SlotArray<int64_t>&, StateWriter*);
template void SaveSlotArray(const SlotArray<double>&, StateWriter*);
template absl::StatusOr<SlotArray<int64_t>> LoadSlotArray(const UsedSlots&,
                                                          StateReader*);
template absl::StatusOr<SlotArray<double>> LoadSlotArray(const UsedSlots&,
                                                         StateReader*);

}  // namespace rill::samplers_internal
