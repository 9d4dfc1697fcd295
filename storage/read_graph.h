// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_READ_GRAPH_H_
#define RILL_STORAGE_READ_GRAPH_H_

#include <memory>
#include <optional>

#include "rill/device/buffer.h"
#include "rill/device/graphs/graph.h"

namespace rill {

// Reads of rows on a device as one graph (RowReader::EnqueueReadsInto): made by
// the first of them, launched by all.
// Thread-safety: thread-compatible.
struct ReadGraph {
  std::shared_ptr<const Buffer> table;  // The rows that it reads.
  std::optional<Graph> graph;           // None before the first read.
};

}  // namespace rill

#endif  // RILL_STORAGE_READ_GRAPH_H_
