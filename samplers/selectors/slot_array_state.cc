// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/slot_array_state.h"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
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

constexpr absl::string_view kType = "SlotArray";

absl::StatusOr<absl::Span<const int64_t>> ValuesOf(const SavedState& state,
                                                   int64_t /*kind*/) {
  return state.Ints("values");
}
absl::StatusOr<absl::Span<const double>> ValuesOf(const SavedState& state,
                                                  double /*kind*/) {
  return state.Doubles("values");
}

}  // namespace

template <typename T>
SavedState SaveSlotArray(const SlotArray<T>& array) {
  std::vector<Run<T>> runs;
  for (Slot slot = array.NextValue(0); slot < array.num_slots();
       slot = array.NextValue(slot + 1)) {
    const T value = array.Get(slot);
    // Values of 0 are those of slots without memory and are not saved.
    if (value == T()) continue;
    if (!runs.empty() && runs.back().Add(slot, value)) continue;
    runs.push_back({.first = slot, .count = 1, .value = value, .step = 0});
  }
  std::vector<int64_t> places;
  std::vector<T> values;
  for (const Run<T>& run : runs) {
    places.insert(places.end(), {run.first, run.count, run.step});
    values.push_back(run.value);
  }
  SavedState state(kType, 1);
  state.Set("runs", std::move(places));
  state.Set("values", std::move(values));
  return state;
}

template <typename T>
absl::StatusOr<SlotArray<T>> LoadSlotArray(const UsedSlots& used,
                                           const SavedState& owner,
                                           absl::string_view name) {
  RILL_ASSIGN_OR_RETURN(const SavedState* const part,
                        owner.Part(name, kType, 1));
  const SavedState& state = *part;
  const int64_t num_slots = used.lanes().num_slots();
  SlotArray<T> array;
  array.Reset(num_slots);
  RILL_ASSIGN_OR_RETURN(const auto runs, state.Ints("runs", 3));
  RILL_ASSIGN_OR_RETURN(const auto values, ValuesOf(state, T()));
  if (runs.size() != 3 * values.size()) {
    return state.Damaged(absl::StrCat("runs: got ", runs.size(), " numbers, ",
                                      "want 3 for each of ", values.size(),
                                      " values"));
  }
  Slot end = 0;  // Of the run before.
  for (size_t i = 0; i < values.size(); ++i) {
    const Run<T> run = {.first = runs[3 * i],
                        .count = runs[3 * i + 1],
                        .value = values[i],
                        .step = runs[3 * i + 2]};
    if (!std::isfinite(static_cast<double>(run.value))) {
      return state.Damaged(absl::StrCat("value of a slot: got ", run.value,
                                        ", want a finite one"));
    }
    if (run.step != 0 && (run.step > 1 || run.step < -1 || !run.IsCounting())) {
      return state.Damaged(absl::StrCat("run ", i, " of values: got a step ",
                                        "of ", run.step, ", want 0"));
    }
    // Checked before anything takes memory for a number that a file names.
    if (run.first < end || run.count < 1 || run.first > num_slots ||
        run.count > num_slots - run.first) {
      return state.Damaged(absl::StrCat(
          "run ", i, " of values: got ", run.count, " slots from ", run.first,
          ", want some in [", end, ", ", num_slots, ")"));
    }
    if (!used.Contains({.first = run.first, .count = run.count})) {
      return state.DoesNotFit(absl::StrCat(
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

template SavedState SaveSlotArray(const SlotArray<int64_t>&);
template SavedState SaveSlotArray(const SlotArray<double>&);
template absl::StatusOr<SlotArray<int64_t>> LoadSlotArray(const UsedSlots&,
                                                          const SavedState&,
                                                          absl::string_view);
template absl::StatusOr<SlotArray<double>> LoadSlotArray(const UsedSlots&,
                                                         const SavedState&,
                                                         absl::string_view);

}  // namespace rill::samplers_internal
