// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_SLICE_ROWS_H_
#define RILL_BENCHMARKS_SLICE_ROWS_H_

#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"

namespace rill {

// The rows of the benchmarks of slices: 13 bytes each, which take 16.
inline TensorDictSpec SliceRowSpec() {
  TensorDictSpec spec;
  spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {2}))
      .IgnoreError();
  spec.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1}))
      .IgnoreError();
  spec.Set("next/done", LeafSpec::Binary({1})).IgnoreError();
  return spec;
}

}  // namespace rill

#endif  // RILL_BENCHMARKS_SLICE_ROWS_H_
