// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_LIVE_SLOTS_H_
#define RILL_PYTHON_BINDINGS_LIVE_SLOTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nanobind/nanobind.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/status.h"
#include "rill/slots/slot.h"
#include "rill/storage/row_reader.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::python {

// The slots of the rows that are there, lane by lane, as an array. The lock is
// held. Cost: O(rows).
inline nanobind::object LiveSlots(const RowReader& rows) {
  const Lanes& lanes = rows.lanes();
  std::vector<Slot> live;
  const std::vector<Cursor> cursors = rows.cursors();
  for (size_t lane = 0; lane < cursors.size(); ++lane) {
    const int64_t count = std::min(cursors[lane].written, lanes.capacity);
    for (int64_t i = 0; i < count; ++i) {
      live.push_back(lanes.SlotOf(static_cast<int64_t>(lane), i));
    }
  }
  const Tensor slots =
      Value(Tensor::Empty(DType::kInt64, {static_cast<int64_t>(live.size())}));
  std::copy(live.begin(), live.end(), slots.data<int64_t>());
  return ArrayOf(slots, "index");
}

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_LIVE_SLOTS_H_
