// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_STORAGE_H_
#define RILL_STORAGE_STORAGE_H_

#include "rill/storage/durable.h"
#include "rill/storage/row_reader.h"
#include "rill/storage/row_writer.h"
#include "rill/storage/storage_traits.h"

namespace rill {

// Rows of steps in a ring, or in one ring a lane. Knows where rows lie, never
// how they are chosen: samplers learn of writes as observers.
//
// A caller that needs a part takes that part: RowReader, RowWriter or Durable.
// Thread-safety: thread-safe.
// Implementations pass both suites of storage/conformance.
class Storage : public RowReader, public RowWriter, public Durable {
 protected:
  explicit Storage(const StorageTraits& traits) : RowReader(traits) {}
};

}  // namespace rill

#endif  // RILL_STORAGE_STORAGE_H_
