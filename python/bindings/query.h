// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_QUERY_H_
#define RILL_PYTHON_BINDINGS_QUERY_H_

#include "nanobind/nanobind.h"
#include "rill/replay/replay_buffer.h"

namespace rill::python {

// The stored trajectories of which `where(rows, slots, lane, id, is_closed,
// is_cut)` is true, as tuples of these; all where it is None. `options` are
// TrajectoryFilter's, and `limit`. `where` may call the buffer. The
// interpreter's lock is held, and given away while rows are read.
nanobind::list Query(ReplayBuffer* buffer, const nanobind::object& where,
                     const nanobind::dict& options);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_QUERY_H_
