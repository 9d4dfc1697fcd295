// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_DEVICE_ROWS_H_
#define RILL_TRANSFORMS_ROWS_DEVICE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/rows/element_kernels.h"
#include "rill/transforms/rows/row_step.h"

namespace rill {

// The rows of a leaf on a device, while maps change them (RowMap::MapOnDevice).
// Views and steps of arithmetic are collected and done in one pass, with those
// of other leaves in one launch.
//
// Dimensions are those of a row, as it is after what was called before.
// Results are those of the host bit for bit, but that a NaN may have other bits
// on CUDA devices.
// Device/Stream: enqueued on the call's stream.
// Errors: a caller has checked dtypes and shapes (RowMap::MapSpec); what is
// left
//   are errors of memory and of launches.
// Thread-safety: thread-compatible.
class DeviceRows {
 public:
  // `leaf` is [*B, row...], with `batch_rank` dimensions of B. `call` and
  // `copies` outlive this.
  DeviceRows(const Tensor& leaf, int batch_rank,
             transforms_internal::DeviceWork::Call* call,
             transforms_internal::ElementCopies* copies);

  // `count` rows of `table` [n, row...], of which the device has the numbers at
  // `rows`: they are gathered on the way. INVALID_ARGUMENT past the limits of
  // Shape.
  static absl::StatusOr<DeviceRows> Gather(
      const Tensor& table, const int64_t* rows, int64_t count,
      transforms_internal::DeviceWork::Call* call,
      transforms_internal::ElementCopies* copies);

  DType dtype() const { return dtype_; }
  Shape shape() const { return view_.shape().Suffix(batch_rank_); }
  // Of the batch.
  int64_t count() const {
    return view_.shape().Prefix(batch_rank_).num_elements();
  }

  // The step, which stays where it is as long as the transform.
  absl::Status Add(const RowStep& step);
  // x * scale + loc in double, rounded once; to [low, high]. One number for all
  // elements, or one for each of a row. The numbers stay as a step does.
  absl::Status ScaleInDouble(absl::Span<const double> scale,
                             absl::Span<const double> loc);
  absl::Status Clip(absl::Span<const double> low,
                    absl::Span<const double> high);
  // x / 255 of float32 or float64.
  absl::Status Divide255();
  absl::Status Cast(DType dtype);

  // Dimension i becomes what dims[i] was.
  absl::Status Permute(absl::Span<const int> dims);
  absl::Status Slice(int dim, int64_t begin, int64_t end);
  // As many elements, in the same order.
  absl::Status Reshape(const Shape& shape);
  // Dimensions of size 1 repeat.
  absl::Status Expand(const Shape& shape);

  // A kernel of the map's own, from count() rows that follow one another at
  // `from` to as many of this dtype and shape at `to`: `launch` enqueues it.
  absl::Status Launch(
      DType dtype, const Shape& shape,
      absl::FunctionRef<absl::Status(const std::byte* from, std::byte* to,
                                     const Stream& stream)>
          launch);
  // Numbers for such a kernel (DeviceWork::Call::Copy).
  template <typename T>
  absl::StatusOr<const T*> Copy(absl::Span<const T> numbers) {
    return call_->Copy(numbers);
  }

  // The leaf afterwards, contiguous, once the copies are launched.
  // `is_in_place`: the steps may write the leaf that came in. `shares`: the
  // result may share its bytes.
  absl::StatusOr<Tensor> Finish(bool is_in_place, bool shares);
  // The same into `to`, of this dtype and shape, whose rows may lie at any
  // distance. It shares no byte with the leaf, or is it where the steps are in
  // place.
  absl::Status FinishInto(const Tensor& to);

 private:
  using ElementStep = transforms_internal::ElementStep;

  // `step` of elements as they are now, but for its types.
  absl::Status AddStep(ElementStep step);
  // The same with numbers `a` and `b`.
  absl::Status AddStep(ElementStep step, absl::Span<const double> a,
                       absl::Span<const double> b);
  // Numbers of a step as a copy on the device, or as one.
  absl::Status SetNumbers(absl::Span<const double> numbers, const double** each,
                          int64_t* many, double* one);
  // Makes what was collected a tensor.
  absl::Status Flush();
  // Views change which element has which number.
  absl::Status FlushNumbers();
  absl::Status SetView(absl::StatusOr<Tensor> view);

  transforms_internal::DeviceWork::Call* const call_;
  transforms_internal::ElementCopies* const copies_;
  const int batch_rank_;
  const Tensor leaf_;
  Tensor view_;
  transforms_internal::ElementCopies::Gathered gathered_;  // Of view_.
  DType dtype_;
  bool is_own_ = false;       // view_ is of memory that was made here.
  bool has_numbers_ = false;  // A step has some for each element of a row.
  absl::InlinedVector<ElementStep, 4> steps_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_DEVICE_ROWS_H_
