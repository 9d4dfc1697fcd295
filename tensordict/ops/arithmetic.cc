// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/arithmetic.h"

#include <algorithm>
#include <cstdint>
#include <string>
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
#include "rill/tensordict/ops/blocks.h"
#include "rill/tensordict/ops/elementwise.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/ops/scalar.h"
#include "rill/tensordict/ops/walk.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

using ops_internal::BinaryKernel;
using ops_internal::BlockReader;
using ops_internal::BlockWriter;
using ops_internal::CheckHost;
using ops_internal::kBlock;
using ops_internal::MapTensors;
using ops_internal::UnaryKernel;

absl::string_view NameOf(BinaryOp op) {
  static constexpr absl::string_view kNames[] = {
      "ops::Add", "ops::Sub",        "ops::Mul",       "ops::Div",
      "ops::Pow", "ops::Minimum",    "ops::Maximum",   "ops::Eq",
      "ops::Ne",  "ops::Lt",         "ops::Le",        "ops::Gt",
      "ops::Ge",  "ops::LogicalAnd", "ops::LogicalOr", "ops::LogicalXor"};
  return kNames[static_cast<int>(op)];
}

absl::string_view NameOf(UnaryOp op) {
  static constexpr absl::string_view kNames[] = {
      "ops::Neg",   "ops::Abs",     "ops::Sign",       "ops::Sqrt",
      "ops::Exp",   "ops::Log",     "ops::Reciprocal", "ops::LogicalNot",
      "ops::IsNaN", "ops::IsFinite"};
  return kNames[static_cast<int>(op)];
}

// An operation on one leaf that has been checked.
struct BinaryCall {
  BinaryKernel kernel;
  Tensor a;
  Tensor b;  // Of a's shape.
};
struct UnaryCall {
  UnaryKernel kernel;
  Tensor a;
};

void Run(const BinaryCall& call, const Tensor& out) {
  int64_t left = out.num_elements();
  if (left == 0) return;
  BlockReader a(call.a);
  BlockReader b(call.b);
  BlockWriter writer(out);
  const bool direct = a.is_direct() && b.is_direct() && writer.is_direct();
  while (left > 0) {
    const int64_t n = direct ? left : std::min(left, kBlock);
    call.kernel(a.Next(n), b.Next(n), writer.Next(), n);
    writer.Commit(n);
    left -= n;
  }
}

void Run(const UnaryCall& call, const Tensor& out) {
  int64_t left = out.num_elements();
  if (left == 0) return;
  BlockReader a(call.a);
  BlockWriter writer(out);
  const bool direct = a.is_direct() && writer.is_direct();
  while (left > 0) {
    const int64_t n = direct ? left : std::min(left, kBlock);
    call.kernel(a.Next(n), writer.Next(), n);
    writer.Commit(n);
    left -= n;
  }
}

// Integers have no result for x / 0 and x ^ -1.
absl::Status CheckDivisor(BinaryOp op, const Tensor& b) {
  if ((op != BinaryOp::kDiv && op != BinaryOp::kPow) || !IsInteger(b.dtype()) ||
      b.num_elements() == 0) {
    return absl::OkStatus();
  }
  const bool fits =
      tensordict_internal::DispatchDType(b.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        bool all = true;
        if constexpr (std::is_integral_v<T>) {
          ops_internal::Cursor(b).Advance(
              b.num_elements(),
              [&](const std::byte* at, int64_t stride, int64_t count) {
                for (int64_t i = 0; i < count; ++i, at += stride) {
                  const T value = tensordict_internal::LoadElement<T>(at);
                  all &= op == BinaryOp::kDiv ? value != T{0} : !(value < T{0});
                }
              });
        }
        return all;
      });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      NameOf(op), ": right side of ", DTypeName(b.dtype()), ": got ",
      op == BinaryOp::kDiv ? "a zero, want none" : "a negative exponent, want ",
      op == BinaryOp::kDiv ? "" : "none", "; Cast to floating point first"));
}

template <typename Op>
absl::Status NotFor(Op op, DType dtype) {
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(op), ": dtype: got ", DTypeName(dtype),
                   ", want one that has this operation; use Cast"));
}

absl::StatusOr<BinaryCall> Prepare(BinaryOp op, const Tensor& a,
                                   const Operand<Tensor>& operand) {
  RILL_RETURN_IF_ERROR(CheckHost(NameOf(op), a));
  const BinaryKernel kernel = ops_internal::FindKernel(op, a.dtype());
  if (kernel == nullptr) return NotFor(op, a.dtype());
  Tensor b;
  if (operand.value() != nullptr) {
    b = *operand.value();
    RILL_RETURN_IF_ERROR(CheckHost(NameOf(op), b));
  } else {
    RILL_ASSIGN_OR_RETURN(b, operand.scalar().ToTensor(NameOf(op), a.dtype()));
  }
  if (b.dtype() != a.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(op), ": dtype of the right side: got ", DTypeName(b.dtype()),
        ", want ", DTypeName(a.dtype()), " as the left side's; use Cast"));
  }
  RILL_RETURN_IF_ERROR(CheckDivisor(op, b));
  if (!(b.shape() == a.shape())) {
    absl::StatusOr<Tensor> wide = b.Expand(a.shape());
    if (!wide.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(op), ": shape of the right side: got ",
                       b.shape().ToString(), ", want ", a.shape().ToString(),
                       " as the left side's, but for sizes of 1"));
    }
    b = *std::move(wide);
  }
  return BinaryCall{kernel, a, std::move(b)};
}

absl::StatusOr<UnaryCall> Prepare(UnaryOp op, const Tensor& a) {
  RILL_RETURN_IF_ERROR(CheckHost(NameOf(op), a));
  const UnaryKernel kernel = ops_internal::FindKernel(op, a.dtype());
  if (kernel == nullptr) return NotFor(op, a.dtype());
  return UnaryCall{kernel, a};
}

// That results of `op` can stand in the bytes of `a`.
template <typename Op>
absl::Status CheckInPlace(Op op, const Tensor& a) {
  if (ops_internal::GivesBool(op) && a.dtype() != DType::kBool) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(op), "InPlace: dtype: got ", DTypeName(a.dtype()),
                     ", want bool as the results'"));
  }
  return a.CheckCopyFrom(a);
}

absl::StatusOr<BinaryCall> PrepareInPlace(BinaryOp op, const Tensor& a,
                                          const Operand<Tensor>& operand) {
  RILL_ASSIGN_OR_RETURN(BinaryCall call, Prepare(op, a, operand));
  RILL_RETURN_IF_ERROR(CheckInPlace(op, a));
  // Elements that are read after they were written.
  if (call.b.buffer() == a.buffer() &&
      (call.b.raw_data() != a.raw_data() ||
       call.b.strides_bytes() != a.strides_bytes())) {
    RILL_ASSIGN_OR_RETURN(call.b, call.b.Clone());
  }
  return call;
}

template <typename Op, typename Call>
absl::StatusOr<Tensor> RunNew(Op op, const Call& call) {
  RILL_ASSIGN_OR_RETURN(
      Tensor out,
      Tensor::Empty(ops_internal::GivesBool(op) ? DType::kBool : call.a.dtype(),
                    call.a.shape()));
  Run(call, out);
  return out;
}

// The right side as MapTensors wants it.
std::vector<const TensorDict*> OthersOf(const Operand<TensorDict>& b) {
  if (b.value() == nullptr) return {};
  return {b.value()};
}
Operand<Tensor> RightOf(const Operand<TensorDict>& b,
                        absl::Span<const Tensor> tensors) {
  if (b.value() == nullptr) return b.scalar();
  return tensors[1];
}

template <typename Call>
void RunAllInPlace(const std::vector<Call>& calls) {
  for (const Call& call : calls) Run(call, call.a);
}

}  // namespace

absl::StatusOr<Tensor> Compute(BinaryOp op, const Tensor& a,
                               const Operand<Tensor>& b) {
  RILL_ASSIGN_OR_RETURN(const BinaryCall call, Prepare(op, a, b));
  return RunNew(op, call);
}

absl::StatusOr<Tensor> Compute(UnaryOp op, const Tensor& a) {
  RILL_ASSIGN_OR_RETURN(const UnaryCall call, Prepare(op, a));
  return RunNew(op, call);
}

absl::StatusOr<TensorDict> Compute(BinaryOp op, const TensorDict& a,
                                   const Operand<TensorDict>& b) {
  const std::vector<const TensorDict*> others = OthersOf(b);
  return MapTensors(NameOf(op), a, {.others = others, .same_keys = true},
                    [&](absl::string_view, absl::Span<const Tensor> tensors) {
                      return Compute(op, tensors[0], RightOf(b, tensors));
                    });
}

absl::StatusOr<TensorDict> Compute(UnaryOp op, const TensorDict& a) {
  return MapTensors(NameOf(op), a, {},
                    [&](absl::string_view, absl::Span<const Tensor> tensors) {
                      return Compute(op, tensors[0]);
                    });
}

absl::Status ComputeInPlace(BinaryOp op, const Tensor& a,
                            const Operand<Tensor>& b) {
  RILL_ASSIGN_OR_RETURN(const BinaryCall call, PrepareInPlace(op, a, b));
  Run(call, a);
  return absl::OkStatus();
}

absl::Status ComputeInPlace(UnaryOp op, const Tensor& a) {
  RILL_ASSIGN_OR_RETURN(const UnaryCall call, Prepare(op, a));
  RILL_RETURN_IF_ERROR(CheckInPlace(op, a));
  Run(call, a);
  return absl::OkStatus();
}

absl::Status ComputeInPlace(BinaryOp op, const TensorDict& a,
                            const Operand<TensorDict>& b) {
  const std::vector<const TensorDict*> others = OthersOf(b);
  std::vector<BinaryCall> calls;
  RILL_RETURN_IF_ERROR(
      MapTensors(NameOf(op), a, {.others = others, .same_keys = true},
                 [&](absl::string_view, absl::Span<const Tensor> tensors)
                     -> absl::StatusOr<Tensor> {
                   RILL_ASSIGN_OR_RETURN(
                       BinaryCall call,
                       PrepareInPlace(op, tensors[0], RightOf(b, tensors)));
                   calls.push_back(std::move(call));
                   return tensors[0];
                 })
          .status());
  RunAllInPlace(calls);
  return absl::OkStatus();
}

absl::Status ComputeInPlace(UnaryOp op, const TensorDict& a) {
  std::vector<UnaryCall> calls;
  RILL_RETURN_IF_ERROR(
      MapTensors(
          NameOf(op), a, {},
          [&](absl::string_view,
              absl::Span<const Tensor> tensors) -> absl::StatusOr<Tensor> {
            RILL_ASSIGN_OR_RETURN(UnaryCall call, Prepare(op, tensors[0]));
            RILL_RETURN_IF_ERROR(CheckInPlace(op, tensors[0]));
            calls.push_back(std::move(call));
            return tensors[0];
          })
          .status());
  RunAllInPlace(calls);
  return absl::OkStatus();
}

}  // namespace rill::ops
