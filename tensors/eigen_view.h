// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_EIGEN_VIEW_H_
#define RILL_TENSORS_EIGEN_VIEW_H_

#include <cstdint>

#include "Eigen/Core"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Eigen's type for an element type: the same, but for the 16-bit floating-point
// types, which compute as Eigen::half and Eigen::bfloat16.
template <typename T>
struct EigenTypeTraits {
  using Type = T;
};
template <>
struct EigenTypeTraits<Float16> {
  using Type = Eigen::half;
};
template <>
struct EigenTypeTraits<BFloat16> {
  using Type = Eigen::bfloat16;
};
template <typename T>
using EigenType = typename EigenTypeTraits<T>::Type;

template <typename T>
using EigenMatrixMap =
    Eigen::Map<Eigen::Matrix<EigenType<T>, Eigen::Dynamic, Eigen::Dynamic,
                             Eigen::RowMajor>>;
template <typename T>
using EigenVectorMap =
    Eigen::Map<Eigen::Matrix<EigenType<T>, Eigen::Dynamic, 1>>;

// A contiguous host tensor of rank >= 1 as a matrix, without a copy: columns
// are its last dimension, rows all others ([B, T, F] becomes B*T x F). T is the
// tensor's element type. Errors as Tensor::Flat; INVALID_ARGUMENT for rank 0.
// The map does not keep the bytes alive.
//
// Example (EigenViewTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto x, EigenMatrix<float>(observation));
//   Eigen::VectorXf mean = x.colwise().mean();
template <typename T>
absl::StatusOr<EigenMatrixMap<T>> EigenMatrix(const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<T> flat, tensor.Flat<T>());
  if (tensor.rank() == 0) {
    return InvalidArgument(
        "EigenMatrix: rank of shape ", tensor.shape().ToString(),
        ": got 0, want at least 1; use EigenVector or Tensor::Item");
  }
  const int last = tensor.rank() - 1;
  return EigenMatrixMap<T>(reinterpret_cast<EigenType<T>*>(flat.data()),
                           tensor.shape().Prefix(last).num_elements(),
                           tensor.shape()[last]);
}

// All elements of a contiguous host tensor as one column.
template <typename T>
absl::StatusOr<EigenVectorMap<T>> EigenVector(const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<T> flat, tensor.Flat<T>());
  return EigenVectorMap<T>(reinterpret_cast<EigenType<T>*>(flat.data()),
                           static_cast<Eigen::Index>(flat.size()));
}

}  // namespace rill

#endif  // RILL_TENSORS_EIGEN_VIEW_H_
