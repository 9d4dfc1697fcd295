// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_ELEMENTWISE_H_
#define RILL_TENSORDICT_OPS_ELEMENTWISE_H_

#include <cstdint>

#include "rill/tensordict/dtype.h"
#include "rill/tensordict/ops/arithmetic.h"

// The loops of arithmetic.h over contiguous elements, for the .cc files of this
// package.
namespace rill::ops_internal {

// a, b and out: `n` elements, out may be a or b. A bool is read as any byte.
using BinaryKernel = void (*)(const void* a, const void* b, void* out,
                              int64_t n);
using UnaryKernel = void (*)(const void* a, void* out, int64_t n);
// The kernel for elements of ComputeDType(dtype) (blocks.h); null if the
// operation is not for it. Its results are of that type, or bool if GivesBool.
BinaryKernel FindKernel(ops::BinaryOp op, DType dtype);
UnaryKernel FindKernel(ops::UnaryOp op, DType dtype);
bool GivesBool(ops::BinaryOp op);
bool GivesBool(ops::UnaryOp op);

}  // namespace rill::ops_internal

#endif  // RILL_TENSORDICT_OPS_ELEMENTWISE_H_
