// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/statistics/exact_norm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/statistics/exact_norm_kernels.h"
#include "rill/transforms/statistics/norm_columns.h"
#include "rill/transforms/statistics/return_scaling_kernel.h"
#include "rill/transforms/statistics/vec_norm_digits.h"

namespace rill::transforms_internal {
namespace {

constexpr int kThreads = 256;
// ReturnScaling has one block.
constexpr int kMostThreads = 1024;

NormRows RowsOf(const Tensor& leaf, const uint8_t* mask) {
  const int64_t lanes = leaf.shape()[0];
  return {.data = leaf.raw_data(),
          .is_double = leaf.dtype() == DType::kFloat64,
          .n = leaf.num_elements() / lanes,
          .lanes = lanes,
          .mask = mask};
}

absl::Status Check(absl::Span<const ExactNormLeaf> leaves, int64_t count,
                   const DeviceSteps::Call& call) {
  NormCheckKernel kernel = {.count = count, .fault = call.fault};
  int64_t elements = 0;
  for (const ExactNormLeaf& leaf : leaves) {
    if (!leaf.after.is_valid()) continue;
    elements += leaf.from.num_elements();
    kernel.leaves[kernel.num_leaves++] = {.rows = RowsOf(leaf.from, call.mask),
                                          .state = leaf.before.data<int64_t>(),
                                          .end = elements};
  }
  if (elements == 0) return absl::OkStatus();
  return LaunchKernel(kernel, GridFor(elements), call.stream);
}

absl::Status Normalise(absl::Span<const ExactNormLeaf> leaves, int64_t count,
                       double eps, const DeviceSteps::Call& call) {
  ExactNormKernel kernel = {.count = count, .eps = eps, .fault = call.fault};
  int64_t columns = 0;
  for (const ExactNormLeaf& leaf : leaves) {
    const NormRows rows = RowsOf(leaf.from, call.mask);
    columns += rows.n;
    kernel.leaves[kernel.num_leaves++] = {
        .rows = rows,
        .out = leaf.to.raw_data(),
        .before = leaf.before.data<int64_t>(),
        .after = leaf.after.is_valid() ? leaf.after.data<int64_t>() : nullptr,
        .end = columns};
  }
  if (columns == 0) return absl::OkStatus();
  return LaunchKernel(kernel, {.blocks = columns, .threads = kThreads},
                      call.stream);
}

}  // namespace

absl::Status NormaliseExactly(absl::Span<const ExactNormLeaf> leaves,
                              int64_t count, double eps,
                              const DeviceSteps::Call& call) {
  // All are checked before one of them learns.
  constexpr auto kMost = static_cast<size_t>(ExactNormKernel::kMostLeaves);
  static_assert(NormCheckKernel::kMostLeaves == ExactNormKernel::kMostLeaves);
  for (size_t i = 0; i < leaves.size(); i += kMost) {
    RILL_RETURN_IF_ERROR(Check(leaves.subspan(i, kMost), count, call));
  }
  for (size_t i = 0; i < leaves.size(); i += kMost) {
    RILL_RETURN_IF_ERROR(Normalise(leaves.subspan(i, kMost), count, eps, call));
  }
  return absl::OkStatus();
}

absl::Status ScaleReturns(const ReturnScalingCall& scaling,
                          const DeviceSteps::Call& call) {
  const NormRows rows = RowsOf(scaling.rewards, nullptr);
  const ReturnScalingKernel kernel = {
      .rewards = rows,
      .out = scaling.rewards.raw_data(),
      .gamma = scaling.gamma,
      .eps = scaling.eps,
      .learns = scaling.learns,
      .returns = scaling.returns.data<double>(),
      .new_returns = scaling.new_returns.data<double>(),
      .sums = scaling.sums.data<int64_t>(),
      .new_sums = scaling.new_sums.data<int64_t>(),
      .fault = call.fault};
  const auto threads = static_cast<int>(
      std::clamp<int64_t>(rows.lanes, 32, int64_t{kMostThreads}));
  return LaunchKernel(kernel, {.blocks = 1, .threads = threads}, call.stream);
}

absl::Status NormError(absl::string_view name, int64_t fault) {
  switch (static_cast<NormFault>(fault)) {
    case NormFault::kValue:
      return InvalidArgument(
          name, ": got a value that is not finite or beyond +-",
          kMostVecNormValue,
          ", want smaller ones to learn from; the statistics stay");
    case NormFault::kRows:
      return FailedPrecondition(name, ": got more rows than fit, want at most ",
                                kMostVecNormRows,
                                " together with decay 1; the statistics stay");
    default:
      return FailedPrecondition(
          name,
          ": state: got numbers that no rows have, want those of some; start "
          "with InitialState");
  }
}

}  // namespace rill::transforms_internal
