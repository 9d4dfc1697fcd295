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
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/ops/blocks.h"
#include "rill/tensordict/ops/elementwise.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/ops/scalar.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

using ops_internal::BinaryKernel;
using ops_internal::BlockReader;
using ops_internal::BlockWriter;
using ops_internal::CheckHost;
using ops_internal::kBlock;
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

// That `b` has no other leaves than `a`, given that it has those of `a`.
absl::Status CheckKeys(absl::string_view caller, const TensorDict& a,
                       const Operand<TensorDict>& b) {
  if (b.value() == nullptr || a.num_leaves() == b.value()->num_leaves()) {
    return absl::OkStatus();
  }
  for (const std::string& key : b.value()->LeafKeys()) {
    RILL_RETURN_IF_ERROR(a.Get(key).status()) << "in " << caller;
  }
  for (const std::string& key : a.LeafKeys()) {
    RILL_RETURN_IF_ERROR(b.value()->Get(key).status()) << "in " << caller;
  }
  return absl::OkStatus();
}

// fn(leaf, the right side's tensor or scalar).
template <typename Fn>
auto WithOperand(const Tensor& leaf, absl::string_view key,
                 const Operand<TensorDict>& b, Fn&& fn)
    -> decltype(fn(leaf, Operand<Tensor>(leaf))) {
  if (b.value() == nullptr) return fn(leaf, Operand<Tensor>(b.scalar()));
  RILL_ASSIGN_OR_RETURN(const Tensor other, b.value()->Get(key));
  return fn(leaf, Operand<Tensor>(other));
}

// Checks all leaves by prepare(key, leaf), then runs what it returned.
template <typename Call, typename Fn>
absl::Status RunAllInPlace(const TensorDict& dict, Fn&& prepare) {
  std::vector<Call> calls;
  absl::Status status;
  dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (!status.ok()) return;
    absl::StatusOr<Call> call = prepare(key, leaf);
    if (call.ok()) {
      calls.push_back(*std::move(call));
    } else {
      status = absl::Status(
          call.status().code(),
          absl::StrCat(call.status().message(), "; at key \"", key, "\""));
    }
  });
  RILL_RETURN_IF_ERROR(status);
  for (const Call& call : calls) Run(call, call.a);
  return absl::OkStatus();
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
  RILL_RETURN_IF_ERROR(CheckKeys(NameOf(op), a, b));
  return a.Apply(
      a.batch_shape(), [&](absl::string_view key, const Tensor& leaf) {
        return WithOperand(leaf, key, b,
                           [&](const Tensor& x, const Operand<Tensor>& y) {
                             return Compute(op, x, y);
                           });
      });
}

absl::StatusOr<TensorDict> Compute(UnaryOp op, const TensorDict& a) {
  return a.Apply(a.batch_shape(), [&](absl::string_view, const Tensor& leaf) {
    return Compute(op, leaf);
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
  RILL_RETURN_IF_ERROR(CheckKeys(NameOf(op), a, b));
  return RunAllInPlace<BinaryCall>(
      a, [&](absl::string_view key, const Tensor& leaf) {
        return WithOperand(leaf, key, b,
                           [&](const Tensor& x, const Operand<Tensor>& y) {
                             return PrepareInPlace(op, x, y);
                           });
      });
}

absl::Status ComputeInPlace(UnaryOp op, const TensorDict& a) {
  return RunAllInPlace<UnaryCall>(
      a,
      [&](absl::string_view, const Tensor& leaf) -> absl::StatusOr<UnaryCall> {
        RILL_ASSIGN_OR_RETURN(UnaryCall call, Prepare(op, leaf));
        RILL_RETURN_IF_ERROR(CheckInPlace(op, leaf));
        return call;
      });
}

}  // namespace rill::ops
