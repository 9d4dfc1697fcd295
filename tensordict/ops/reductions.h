// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_REDUCTIONS_H_
#define RILL_TENSORDICT_OPS_REDUCTIONS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {

// Sums and the like over dimensions of a tensor, or of every leaf of a
// dictionary.
//
//   op            dtypes  result       of no elements
//   Sum           all     int64 / own  0
//   Prod          all     int64 / own  1
//   Mean          float   own          NaN
//   Var, Std      float   own          NaN (also of too few, see below)
//   Norm          float   own          0       (L2)
//   Min, Max      all     own          INVALID_ARGUMENT
//   ArgMin, ArgMax all    int64        INVALID_ARGUMENT
//   All, Any      all     bool         true, false
//   CumSum        all     int64 / own
//
// all: bool, uint8, int8 to int64 and floating point; "int64 / own": of
// integers and bool int64, which wraps, else the own dtype. Floating point is
// summed in double with compensation (Neumaier) and rounded once. NaN goes
// through Min, Max, ArgMin and ArgMax (the first one); of equal values ArgMin
// and ArgMax say the first. Var and Std divide by n - correction.
//
// Errors: INVALID_ARGUMENT for dimensions, dtypes and device memory.
// Thread-safety: thread-safe for reading.
// Cost: one pass in the order of memory's dimensions; a state of 8 to 32 bytes
//   for each element of the result.
//
// Example (ReductionsTest.Example runs it):
//   Sum(batch, {.dim = 0});                     // [32, 4] -> [4], as the batch
//   Mean(batch);                                // over all batch dimensions
//   Max(batch, {.over = ReduceOver::kLeaf});    // one number a leaf

enum class ReduceOver {
  kBatch,    // All batch dimensions; leaves keep what lies behind them.
  kFeature,  // What lies behind the batch dimensions; the batch stays.
  kLeaf,     // Every leaf to one number.
};
struct ReduceOptions {
  // One batch dimension; if set, `over` says nothing. In [-rank, rank).
  std::optional<int> dim = {};
  ReduceOver over = ReduceOver::kBatch;
  // Dimensions stay with size 1. For kFeature and kLeaf only of the tensors.
  bool keep_dims = false;
  // For Var and Std.
  int64_t correction = 1;
};

enum class ReduceOp : uint8_t {
  kSum,
  kProd,
  kMean,
  kVar,
  kStd,
  kNorm,
  kMin,
  kMax,
  kArgMin,
  kArgMax,
  kAll,
  kAny,
};

// Over the dimensions `dims` of a tensor (none: all of them). ArgMin and ArgMax
// count in row-major order of these.
struct ReduceDims {
  absl::Span<const int> dims = {};
  bool keep_dims = false;
  int64_t correction = 1;
};
absl::StatusOr<Tensor> Reduce(ReduceOp op, const Tensor& tensor,
                              const ReduceDims& options);
// Values without a shape are kept, values a row are INVALID_ARGUMENT, and so
// are lazy stacks and ragged tensors unless they can be made dense. In nested
// dictionaries the same dimensions are reduced; under kFeature and kLeaf they
// lose the tails of their longer batch shapes.
absl::StatusOr<TensorDict> Reduce(ReduceOp op, const TensorDict& dict,
                                  const ReduceOptions& options);

#define RILL_OPS_REDUCTION_(Name)                                             \
  inline absl::StatusOr<Tensor> Name(const Tensor& tensor,                    \
                                     const ReduceDims& options = {}) {        \
    return Reduce(ReduceOp::k##Name, tensor, options);                        \
  }                                                                           \
  inline absl::StatusOr<TensorDict> Name(const TensorDict& dict,              \
                                         const ReduceOptions& options = {}) { \
    return Reduce(ReduceOp::k##Name, dict, options);                          \
  }
RILL_OPS_REDUCTION_(Sum)
RILL_OPS_REDUCTION_(Prod)
RILL_OPS_REDUCTION_(Mean)
RILL_OPS_REDUCTION_(Var)
RILL_OPS_REDUCTION_(Std)
RILL_OPS_REDUCTION_(Norm)
RILL_OPS_REDUCTION_(Min)
RILL_OPS_REDUCTION_(Max)
RILL_OPS_REDUCTION_(ArgMin)
RILL_OPS_REDUCTION_(ArgMax)
RILL_OPS_REDUCTION_(All)
RILL_OPS_REDUCTION_(Any)
#undef RILL_OPS_REDUCTION_

// The sums of the first 1, 2, ... elements along a dimension (of a dictionary a
// batch dimension).
absl::StatusOr<Tensor> CumSum(const Tensor& tensor, int dim);
absl::StatusOr<TensorDict> CumSum(const TensorDict& dict, int dim);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_REDUCTIONS_H_
