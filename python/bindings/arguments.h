// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ARGUMENTS_H_
#define RILL_PYTHON_BINDINGS_ARGUMENTS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "rill/python/bindings/batch.h"
#include "rill/samplers/priority_reduction.h"
#include "rill/slots/slot.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {

// Arguments of a buffer's calls besides batches. `caller` begins the
// messages. The lock is held, but for CheckPlaces and FillPlaces.

// The slots of an array or a list of integers: a copy, as another thread may
// change the array meanwhile. Throws INVALID_ARGUMENT of others.
std::vector<Slot> SlotsOf(absl::string_view caller, nanobind::handle index);

// New priorities of rows that were drawn.
struct PriorityUpdate {
  std::vector<Draw> draws;
  std::vector<float> priorities;
};

// `generation` None: that of the batch of `made` with this index. `priority`:
// one number, one of each row, or [rows, ...], which `reduction` makes one of
// each. Throws INVALID_ARGUMENT with the argument, and FAILED_PRECONDITION
// where the index is that of no batch.
PriorityUpdate ReadPriorities(nanobind::handle index,
                              nanobind::handle generation,
                              nanobind::handle priority,
                              PriorityReduction reduction,
                              const OutputMaker& made);

// INVALID_ARGUMENT where one of the caller's `places` is no leaf of the batch:
// it would keep its old values.
absl::Status CheckPlaces(const TensorDict& places, const TensorDict& batch);
// Copies leaves of `batch` that are not in the memory of `places` to theirs.
// INVALID_ARGUMENT with the key where that is none, or another.
absl::Status FillPlaces(const TensorDict& batch, const TensorDict& places);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ARGUMENTS_H_
