// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/query.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/status.h"
#include "rill/replay/stored_trajectory.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

nb::tuple TupleOf(const StoredTrajectory& trajectory) {
  Tensor slots = Value(Tensor::Empty(
      DType::kInt64, {static_cast<int64_t>(trajectory.slots.size())}));
  std::copy(trajectory.slots.begin(), trajectory.slots.end(),
            slots.data<int64_t>());
  const auto batch = std::make_shared<OutputBatch>();
  batch->rows = trajectory.rows;
  OutputMaker maker;
  nb::object id = nb::none();
  if (trajectory.id.has_value()) id = nb::int_(*trajectory.id);
  return nb::make_tuple(maker.Make(batch), ArrayOf(slots, "slots"),
                        trajectory.lane, id, trajectory.is_closed,
                        trajectory.is_cut);
}

}  // namespace

nb::list Query(ReplayBuffer* buffer, const nb::object& where,
               const nb::dict& options) {
  TrajectoryFilter filter;
  int64_t limit = std::numeric_limits<int64_t>::max();
  OptionReader::OfCopy("ReplayBuffer::query", options)
      .Read("keys", &filter.keys)
      .Read("min_rows", &filter.min_rows)
      .Read("max_rows", &filter.max_rows)
      .Read("only_whole", &filter.only_whole)
      .Read("limit", &limit)
      .CheckAllRead();
  if (limit < 0) {
    throw StatusError{InvalidArgument("ReplayBuffer::query: limit: got ", limit,
                                      ", want >= 0")};
  }
  nb::list found;
  if (limit == 0) return found;
  const auto visit =
      [&](const StoredTrajectory& trajectory) -> absl::StatusOr<bool> {
    bool goes_on = true;
    RILL_RETURN_IF_ERROR(CallPython("query", [&] {
      const nb::tuple shown = TupleOf(trajectory);
      const bool is_wanted =
          where.is_none() || nb::bool_(CallObject(where, *shown));
      if (is_wanted) found.append(shown);
      goes_on = static_cast<int64_t>(nb::len(found)) < limit;
    }));
    return goes_on;
  };
  absl::Status status;
  {
    const Unlocked unlocked;
    status = TakeNoted(buffer->Iterate(filter, visit));
  }
  Check(std::move(status));
  return found;
}

}  // namespace rill::python
