// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/reductions.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/ops/accumulators.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/ops/walk.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

using ops_internal::ExtremeOf;
using ops_internal::MeanOf;
using ops_internal::NormOf;
using ops_internal::ProductOf;
using ops_internal::SumOf;
using ops_internal::VarianceOf;
using tensordict_internal::kIsReal;
using tensordict_internal::LoadElement;

constexpr absl::string_view kNames[] = {
    "ops::Sum",    "ops::Prod",   "ops::Mean", "ops::Var",
    "ops::Std",    "ops::Norm",   "ops::Min",  "ops::Max",
    "ops::ArgMin", "ops::ArgMax", "ops::All",  "ops::Any"};
absl::string_view NameOf(ReduceOp op) { return kNames[static_cast<int>(op)]; }

// The type in which elements of type T are accumulated.
template <typename T>
using Wide = std::conditional_t<kIsReal<T>, double, int64_t>;
template <typename T>
Wide<T> Widen(const std::byte* at) {
  if constexpr (kIsReal<T>) {
    return tensordict_internal::AsDouble(LoadElement<T>(at));
  } else {
    return static_cast<int64_t>(LoadElement<T>(at));
  }
}

// Calls fn(TypeTag<T>()) for dtypes with arithmetic.
template <typename Fn>
void Dispatch(DType dtype, Fn&& fn) {
  tensordict_internal::DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (tensordict_internal::kHasArithmetic<T>) fn(tag);
  });
}

// A result as an element of the result's dtype.
template <typename V>
void Store(const Tensor& out, int64_t at, V value) {
  Dispatch(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsReal<T>) {
      out.data<T>()[at] =
          tensordict_internal::FromDouble<T>(static_cast<double>(value));
    } else {
      out.data<T>()[at] = static_cast<T>(value);
    }
  });
}

// fn(first, stride_bytes, count, place, step) for all runs along the last
// dimension, in row-major order: `place` is where the first element goes in the
// result, `steps[d]` what a step along dimension d adds to it.
template <typename Fn>
void ForEachRun(const Tensor& tensor, absl::Span<const int64_t> steps,
                Fn&& fn) {
  if (tensor.num_elements() == 0) return;
  const int last = tensor.rank() - 1;
  const auto visit = [&](auto&& self, int dim, const std::byte* at,
                         int64_t place) -> void {
    const int64_t size = tensor.shape()[dim];
    const int64_t stride = tensor.strides_bytes()[dim];
    if (dim == last) return fn(at, stride, size, place, steps[dim]);
    for (int64_t i = 0; i < size; ++i, at += stride, place += steps[dim]) {
      self(self, dim + 1, at, place);
    }
  };
  if (last < 0) {
    fn(tensor.raw_data(), int64_t{0}, int64_t{1}, int64_t{0}, int64_t{0});
  } else {
    visit(visit, 0, tensor.raw_data(), 0);
  }
}

// The shapes of a reduction.
struct Job {
  Tensor from;
  std::vector<int64_t> steps;  // As ForEachRun's.
  Tensor out;                  // Contiguous.
  int64_t correction;
};

template <typename State, typename T, typename Result>
void Run(const Job& job, Result&& result) {
  std::vector<State> states(job.out.num_elements());
  ForEachRun(job.from, job.steps,
             [&](const std::byte* at, int64_t stride, int64_t count,
                 int64_t place, int64_t step) {
               if (step == 0) {
                 State state = states[place];  // In registers.
                 for (int64_t i = 0; i < count; ++i, at += stride) {
                   state.Add(Widen<T>(at));
                 }
                 states[place] = state;
                 return;
               }
               for (int64_t i = 0; i < count;
                    ++i, at += stride, place += step) {
                 states[place].Add(Widen<T>(at));
               }
             });
  for (size_t i = 0; i < states.size(); ++i) {
    Store(job.out, static_cast<int64_t>(i), result(states[i]));
  }
}

template <bool kIsAll>
struct TruthOf {
  bool value = kIsAll;
  template <typename V>
  void Add(V element) {
    value = kIsAll ? value && element != V{0} : value || element != V{0};
  }
};

template <typename T>
void RunOp(ReduceOp op, const Job& job) {
  using V = Wide<T>;
  const auto result = [](const auto& state) { return state.Result(); };
  const auto variance = [&](const VarianceOf& state) {
    return state.Result(job.correction);
  };
  const auto best = [](const auto& state) { return state.best; };
  const auto at = [](const auto& state) { return state.at; };
  const auto truth = [](const auto& state) { return int64_t{state.value}; };
  switch (op) {
    case ReduceOp::kSum:
      return Run<SumOf<V>, T>(job, result);
    case ReduceOp::kProd:
      return Run<ProductOf<V>, T>(job, result);
    case ReduceOp::kMean:
      return Run<MeanOf, T>(job, result);
    case ReduceOp::kVar:
      return Run<VarianceOf, T>(job, variance);
    case ReduceOp::kStd:
      return Run<VarianceOf, T>(job, [&](const VarianceOf& state) {
        return std::sqrt(variance(state));
      });
    case ReduceOp::kNorm:
      return Run<NormOf, T>(job, result);
    case ReduceOp::kMin:
      return Run<ExtremeOf<V, true>, T>(job, best);
    case ReduceOp::kMax:
      return Run<ExtremeOf<V, false>, T>(job, best);
    case ReduceOp::kArgMin:
      return Run<ExtremeOf<V, true>, T>(job, at);
    case ReduceOp::kArgMax:
      return Run<ExtremeOf<V, false>, T>(job, at);
    case ReduceOp::kAll:
      return Run<TruthOf<true>, T>(job, truth);
    case ReduceOp::kAny:
      return Run<TruthOf<false>, T>(job, truth);
  }
}

bool WantsFloat(ReduceOp op) {
  return op >= ReduceOp::kMean && op <= ReduceOp::kNorm;
}
bool WantsElements(ReduceOp op) {
  return op >= ReduceOp::kMin && op <= ReduceOp::kArgMax;
}

DType ResultDType(ReduceOp op, DType dtype) {
  if (op >= ReduceOp::kAll) return DType::kBool;
  if (op >= ReduceOp::kArgMin) return DType::kInt64;
  const bool is_sum = op == ReduceOp::kSum || op == ReduceOp::kProd;
  return is_sum && !IsFloatingPoint(dtype) ? DType::kInt64 : dtype;
}

absl::Status CheckDType(absl::string_view caller, DType dtype,
                        bool wants_float) {
  if (wants_float ? IsFloatingPoint(dtype)
                  : tensordict_internal::HasArithmetic(dtype)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": dtype: got ", DTypeName(dtype), ", want ",
      wants_float ? "floating point" : "one with arithmetic", "; use Cast"));
}

// Dimension d is reduced if bit d of `mask` is set.
absl::StatusOr<Tensor> ReduceMask(ReduceOp op, const Tensor& tensor,
                                  uint32_t mask, bool keep_dims,
                                  int64_t correction) {
  RILL_RETURN_IF_ERROR(ops_internal::CheckHost(NameOf(op), tensor));
  RILL_RETURN_IF_ERROR(CheckDType(NameOf(op), tensor.dtype(), WantsFloat(op)));
  const int rank = tensor.rank();
  const auto is_reduced = [&](int d) { return (mask >> d & 1) != 0; };
  std::vector<int64_t> sizes;
  bool has_elements = true;
  for (int d = 0; d < rank; ++d) {
    if (!is_reduced(d)) sizes.push_back(tensor.shape()[d]);
    if (is_reduced(d) && keep_dims) sizes.push_back(1);
    if (is_reduced(d)) has_elements = has_elements && tensor.shape()[d] > 0;
  }
  if (WantsElements(op) && !has_elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(op), ": elements to choose from: got none in shape ",
        tensor.shape().ToString(), ", want at least one"));
  }
  RILL_ASSIGN_OR_RETURN(const Shape shape,
                        ops_internal::MakeShape(NameOf(op), sizes));
  Job job;
  job.from = tensor;
  job.correction = correction;
  RILL_ASSIGN_OR_RETURN(job.out,
                        Tensor::Empty(ResultDType(op, tensor.dtype()), shape));
  job.steps.assign(rank, 0);
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (is_reduced(d)) continue;
    job.steps[d] = step;
    step *= tensor.shape()[d];
  }
  Dispatch(tensor.dtype(),
           [&](auto tag) { RunOp<typename decltype(tag)::type>(op, job); });
  return job.out;
}

// Every leaf to fn(leaf), in dictionaries of batch shape `batch`.
template <typename Fn>
absl::StatusOr<TensorDict> MapLeaves(const TensorDict& dict, const Shape& batch,
                                     const Fn& fn) {
  TensorDict result(batch);
  for (const std::string& key : dict.Keys()) {
    if (const Tensor* leaf = dict.Find(key)) {
      absl::StatusOr<Tensor> mapped = fn(*leaf);
      RILL_RETURN_IF_ERROR(mapped.status()) << "at key \"" << key << "\"";
      RILL_RETURN_IF_ERROR(result.Set(key, *std::move(mapped)));
    } else if (const TensorDict* nested = dict.FindDict(key)) {
      RILL_ASSIGN_OR_RETURN(TensorDict mapped, MapLeaves(*nested, batch, fn));
      RILL_RETURN_IF_ERROR(result.Set(key, std::move(mapped)));
    } else {
      RILL_ASSIGN_OR_RETURN(const TensorDict alone, dict.Select({key}));
      RILL_RETURN_IF_ERROR(result.Update(alone));
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<Tensor> Reduce(ReduceOp op, const Tensor& tensor,
                              const ReduceDims& options) {
  RILL_ASSIGN_OR_RETURN(
      const std::vector<int> dims,
      ops_internal::WrapDims(NameOf(op), tensor.shape(), options.dims));
  uint32_t mask = dims.empty() ? (1u << tensor.rank()) - 1 : 0;
  for (const int dim : dims) mask |= 1u << dim;
  return ReduceMask(op, tensor, mask, options.keep_dims, options.correction);
}

absl::StatusOr<TensorDict> Reduce(ReduceOp op, const TensorDict& dict,
                                  const ReduceOptions& options) {
  const Shape& batch = dict.batch_shape();
  const uint32_t batch_mask = (1u << batch.rank()) - 1;
  const auto reduce = [&](const Tensor& leaf, uint32_t mask) {
    return ReduceMask(op, leaf, mask, options.keep_dims, options.correction);
  };
  // There is no sum of texts, and no telling apart of an index of them.
  RILL_RETURN_IF_ERROR(
      ops_internal::CheckNone(NameOf(op), dict, {EntryKind::kNonTensorStack}));
  if (!options.dim.has_value() && options.over != ReduceOver::kBatch) {
    RILL_RETURN_IF_ERROR(ops_internal::CheckNone(
        NameOf(op), dict, {EntryKind::kLazyStack, EntryKind::kRagged}));
    const bool keeps_batch = options.over == ReduceOver::kFeature;
    return MapLeaves(
        dict, keeps_batch ? batch : Shape(), [&](const Tensor& leaf) {
          const uint32_t all = (1u << leaf.rank()) - 1;
          return reduce(leaf, keeps_batch ? all & ~batch_mask : all);
        });
  }
  uint32_t mask = batch_mask;
  if (options.dim.has_value()) {
    RILL_ASSIGN_OR_RETURN(
        const int dim, ops_internal::WrapDim(NameOf(op), batch, *options.dim));
    mask = 1u << dim;
  }
  Shape shape;
  for (int d = 0; d < batch.rank(); ++d) {
    const bool reduced = (mask >> d & 1) != 0;
    if (!reduced) shape = shape.Concat({batch[d]});
    if (reduced && options.keep_dims) shape = shape.Concat({1});
  }
  return dict.MapShape(shape,
                       [&](const Tensor& leaf) { return reduce(leaf, mask); });
}

absl::StatusOr<Tensor> CumSum(const Tensor& tensor, int dim) {
  RILL_RETURN_IF_ERROR(ops_internal::CheckHost("ops::CumSum", tensor));
  RILL_RETURN_IF_ERROR(CheckDType("ops::CumSum", tensor.dtype(), false));
  RILL_ASSIGN_OR_RETURN(
      dim, ops_internal::WrapDim("ops::CumSum", tensor.shape(), dim));
  RILL_ASSIGN_OR_RETURN(
      Tensor out, Tensor::Empty(ResultDType(ReduceOp::kSum, tensor.dtype()),
                                tensor.shape()));
  if (out.num_elements() == 0) return out;
  std::vector<int64_t> steps(tensor.rank(), 0);
  int64_t lanes = 1;
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    if (d == dim) continue;
    steps[d] = lanes;
    lanes *= tensor.shape()[d];
  }
  Dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<SumOf<Wide<T>>> states(lanes);
    using Out = std::conditional_t<kIsReal<T>, T, int64_t>;
    Out* to = out.data<Out>();
    ForEachRun(
        tensor, steps,
        [&](const std::byte* at, int64_t stride, int64_t count, int64_t lane,
            int64_t step) {
          for (int64_t i = 0; i < count; ++i, at += stride, lane += step) {
            states[lane].Add(Widen<T>(at));
            if constexpr (kIsReal<T>) {
              *to++ = tensordict_internal::FromDouble<T>(states[lane].Result());
            } else {
              *to++ = states[lane].Result();
            }
          }
        });
  });
  return out;
}

absl::StatusOr<TensorDict> CumSum(const TensorDict& dict, int dim) {
  RILL_ASSIGN_OR_RETURN(
      dim, ops_internal::WrapDim("ops::CumSum", dict.batch_shape(), dim));
  RILL_RETURN_IF_ERROR(ops_internal::CheckNone("ops::CumSum", dict,
                                               {EntryKind::kNonTensorStack}));
  return dict.MapShape(dict.batch_shape(),
                       [&](const Tensor& leaf) { return CumSum(leaf, dim); });
}

}  // namespace rill::ops
