// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TESTING_FAKE_ROW_COUNTER_H_
#define RILL_TRANSFORMS_TESTING_FAKE_ROW_COUNTER_H_

#include <memory>

#include "rill/transforms/batch_transform.h"

namespace rill {

// A transform with a state, for tests of classes that keep one. Forward numbers
// the rows that it has ever seen, in `row_number` int64 [*batch, 1]. State: the
// number of rows, `rows` int64 [].
// Thread-safety: immutable.
std::unique_ptr<BatchTransform> MakeFakeRowCounter();

// The same of writes: Inverse counts the rows that it has ever seen, and changes
// none.
std::unique_ptr<BatchTransform> MakeFakeWriteCounter();

}  // namespace rill

#endif  // RILL_TRANSFORMS_TESTING_FAKE_ROW_COUNTER_H_
