// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_CHOICE_KERNELS_H_
#define RILL_TRANSFORMS_ACTIONS_CHOICE_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/transforms/env/draw_kernels.h"
#include "rill/transforms/rows/element_kernels.h"

// Choices of action transforms, a lane a thread, for host and devices
// (device/kernels/kernel.h). A fault is 1 + the number of the last lane with a
// wrong action; what it then gets is an action that the environment takes.

namespace rill::transforms_internal {

// Rows of choices (ChoiceRows, action_specs.h): an index each, or one-hot.
struct ChoiceLeaf {
  void* data = nullptr;
  ElementType type = ElementType::kInt64;
  bool is_one_hot = false;
  int64_t row = 1;    // Elements of a row.
  int64_t bytes = 0;  // Of all rows.

  // The elements of a choice among `options`.
  constexpr int64_t Width(int64_t options) const {
    return is_one_hot ? options : 1;
  }
  // The option of the choice that begins at this element; -1: none, or several.
  constexpr int64_t Read(int64_t element, int64_t options) const {
    if (!is_one_hot) {
      const double index = NumberAt(element);
      // The comparisons are false for NaN.
      const bool is_option =
          index >= 0 && index < static_cast<double>(options) &&
          index == static_cast<double>(static_cast<int64_t>(index));
      return is_option ? static_cast<int64_t>(index) : -1;
    }
    int64_t found = -1;
    for (int64_t option = 0; option < options; ++option) {
      if (NumberAt(element + option) == 0) continue;
      if (found >= 0) return -1;
      found = option;
    }
    return found;
  }
  constexpr void Write(int64_t element, int64_t options, int64_t option) const {
    if (!is_one_hot) return Store(element, option);
    for (int64_t i = 0; i < options; ++i) {
      Store(element + i, i == option ? 1 : 0);
    }
  }

 private:
  constexpr double NumberAt(int64_t element) const {
    return ElementAsDouble(type, LoadElement(type, data, element));
  }
  constexpr void Store(int64_t element, int64_t number) const {
    ElementValue value;
    value.bits = number;
    StoreElement(type, CastElement(ElementType::kInt64, type, value), element,
                 data);
  }
};

// ActionDiscretizer: numbers of intervals.
struct DiscretizeKernel {
  static constexpr const char* kName = "discretize";
  using Shared = NoState;
  using Local = NoState;

  ChoiceLeaf from;
  void* to = nullptr;  // float32 or float64 [lanes, elements].
  bool to_double = false;
  // The bounds of each element, two arrays one behind the other. The same of
  // its number of intervals, and where its choice begins in a row.
  const double* bounds = nullptr;
  const int64_t* choices = nullptr;
  int64_t elements = 0;
  int64_t lanes = 0;
  double part = 0.5;  // Of the interval, where nothing is drawn.
  DrawSource draws;
  int64_t* fault = nullptr;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t lane = thread.index(); lane < lanes;
         lane += thread.grid_size()) {
      int64_t count = draws.before == nullptr ? 0 : draws.before[lane];
      for (int64_t i = 0; i < elements; ++i) {
        const int64_t n = choices[i];
        int64_t interval =
            from.Read(lane * from.row + choices[elements + i], n);
        if (interval < 0) {
          Thread::AtomicMax(fault, lane + 1);
          interval = 0;
        }
        double share = part;
        if (draws.before != nullptr) {
          share = DrawSource::Unit(draws.Bits(lane, count++, 0));
        }
        Set(lane * elements + i, i, interval, n, share);
      }
      if (draws.before != nullptr) draws.after[lane] = count;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(from.data, from.bytes);
    visit(to, lanes * elements * int64_t{to_double ? 8 : 4});
    visit(bounds, 2 * elements * int64_t{sizeof(double)});
    visit(choices, 2 * elements * int64_t{sizeof(int64_t)});
    draws.VisitMemory(visit);
    visit(fault, int64_t{sizeof(int64_t)});
  }

 private:
  static constexpr bool IsFinite(double x) { return x - x == 0; }

  // low + (interval + part) / n * (high - low), in double.
  constexpr void Set(int64_t at, int64_t i, int64_t interval, int64_t n,
                     double of_interval) const {
    const double low = bounds[i];
    const double high = bounds[elements + i];
    const double share =
        (static_cast<double>(interval) + of_interval) / static_cast<double>(n);
    // The bounds may be further apart than the largest number.
    const double value = IsFinite(high - low)
                             ? low + share * (high - low)
                             : (1 - share) * low + share * high;
    if (to_double) {
      static_cast<double*>(to)[at] = ClipElement(value, low, high);
    } else {
      static_cast<float*>(to)[at] =
          ClipElement(static_cast<float>(value), static_cast<float>(low),
                      static_cast<float>(high));
    }
  }
};

// ActionMask with `replace`: options that the mask does not allow.
struct ReplaceForbiddenKernel {
  static constexpr const char* kName = "replace_forbidden";
  using Shared = NoState;
  using Local = NoState;

  ChoiceLeaf action;
  const uint8_t* mask = nullptr;  // [lanes, choices, options]
  int64_t choices = 1;
  int64_t options = 1;
  int64_t lanes = 0;
  int64_t* fault = nullptr;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < lanes * choices;
         i += thread.grid_size()) {
      const int64_t lane = i / choices;
      const uint8_t* const allowed = mask + i * options;
      const int64_t element =
          lane * action.row + i % choices * action.Width(options);
      const int64_t option = action.Read(element, options);
      if (option >= 0 && allowed[option] != 0) continue;
      int64_t first = 0;
      while (first < options && allowed[first] == 0) ++first;
      // Such an action, or a mask that allows none, is a mistake: it stays.
      if (option < 0 || first == options) {
        Thread::AtomicMax(fault, lane + 1);
      } else {
        action.Write(element, options, first);
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(action.data, action.bytes);
    visit(mask, lanes * choices * options);
    visit(fault, int64_t{sizeof(int64_t)});
  }
};

// DiscreteActionProjection: choices past the end become drawn ones.
struct ProjectChoicesKernel {
  static constexpr const char* kName = "project_choices";
  using Shared = NoState;
  using Local = NoState;

  ChoiceLeaf from;
  ChoiceLeaf to;
  int64_t choices = 1;
  int64_t options = 1;  // Of the policy.
  int64_t effective = 1;
  DrawSource draws;
  int64_t* fault = nullptr;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t lane = thread.index(); lane < draws.lanes;
         lane += thread.grid_size()) {
      int64_t count = draws.before[lane];
      for (int64_t k = 0; k < choices; ++k) {
        int64_t option =
            from.Read(lane * from.row + k * from.Width(options), options);
        if (option < 0) {
          Thread::AtomicMax(fault, lane + 1);
          option = 0;
        }
        if (option >= effective) {
          option = DrawSource::Bounded(draws.Bits(lane, count++, 0), effective);
        }
        to.Write(lane * to.row + k * to.Width(effective), effective, option);
      }
      draws.after[lane] = count;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(from.data, from.bytes);
    visit(to.data, to.bytes);
    draws.VisitMemory(visit);
    visit(fault, int64_t{sizeof(int64_t)});
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ACTIONS_CHOICE_KERNELS_H_
