// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/device_rows.h"

#include <cmath>
#include <limits>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"

namespace rill {

using transforms_internal::DeviceWork;
using transforms_internal::ElementCopies;
using transforms_internal::ElementCopyKernel;
using transforms_internal::ElementType;

namespace {

ElementType TypeOf(DType dtype) { return static_cast<ElementType>(dtype); }

// The whole numbers of the type that lie in [low, high] (ClipMap).
template <typename T>
void SetWhole(double low, double high, int64_t* least, int64_t* most) {
  const auto into = [](double value) -> int64_t {
    constexpr auto kMin = std::numeric_limits<T>::min();
    constexpr auto kMax = std::numeric_limits<T>::max();
    if (value <= static_cast<double>(kMin)) return kMin;
    if (value >= static_cast<double>(kMax)) return kMax;
    return static_cast<T>(value);
  };
  *least = into(std::ceil(low));
  *most = into(std::floor(high));
}

void SetWhole(DType dtype, double low, double high, int64_t* least,
              int64_t* most) {
  switch (dtype) {
    case DType::kUInt8:
      return SetWhole<uint8_t>(low, high, least, most);
    case DType::kInt8:
      return SetWhole<int8_t>(low, high, least, most);
    case DType::kInt16:
      return SetWhole<int16_t>(low, high, least, most);
    case DType::kInt32:
      return SetWhole<int32_t>(low, high, least, most);
    default:
      return SetWhole<int64_t>(low, high, least, most);
  }
}

}  // namespace

DeviceRows::DeviceRows(const Tensor& leaf, int batch_rank,
                       DeviceWork::Call* call, ElementCopies* copies)
    : call_(call),
      copies_(copies),
      batch_rank_(batch_rank),
      leaf_(leaf),
      view_(leaf),
      dtype_(leaf.dtype()) {}

absl::StatusOr<DeviceRows> DeviceRows::Gather(const Tensor& table,
                                              const int64_t* rows,
                                              int64_t count,
                                              DeviceWork::Call* call,
                                              ElementCopies* copies) {
  RILL_ASSIGN_OR_RETURN(const Tensor first, table.Slice(0, 0, 1));
  RILL_ASSIGN_OR_RETURN(
      const Tensor all,
      first.Expand(Shape({count}).Concat(table.shape().Suffix(1))));
  DeviceRows made(all, 1, call, copies);
  made.gathered_ = {.rows = rows,
                    .stride = table.strides_bytes()[0],
                    .table_rows = table.shape()[0]};
  return made;
}

absl::Status DeviceRows::AddStep(ElementStep step) {
  step.type = TypeOf(dtype_);
  if (static_cast<int>(steps_.size()) == ElementCopyKernel::kMostSteps) {
    RILL_RETURN_IF_ERROR(Flush());
  }
  steps_.push_back(step);
  return absl::OkStatus();
}

absl::Status DeviceRows::SetNumbers(absl::Span<const double> numbers,
                                    const double** each, int64_t* many,
                                    double* one) {
  *one = numbers[0];
  if (numbers.size() == 1) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(*each, Copy(numbers));
  *many = static_cast<int64_t>(numbers.size());
  return absl::OkStatus();
}

absl::Status DeviceRows::AddStep(ElementStep step, absl::Span<const double> a,
                                 absl::Span<const double> b) {
  RILL_RETURN_IF_ERROR(SetNumbers(a, &step.each_a, &step.many_a, &step.a));
  RILL_RETURN_IF_ERROR(SetNumbers(b, &step.each_b, &step.many_b, &step.b));
  RILL_RETURN_IF_ERROR(AddStep(step));
  has_numbers_ = has_numbers_ || a.size() > 1 || b.size() > 1;
  return absl::OkStatus();
}

absl::Status DeviceRows::Add(const RowStep& step) {
  using From = RowStep::Kind;
  using To = ElementStep::Kind;
  ElementStep to;
  const int rank = shape().rank();
  switch (step.kind) {
    case From::kScaleThenShift:
    case From::kShiftThenDivide:
      to.kind = step.kind == From::kScaleThenShift ? To::kScaleThenShift
                                                   : To::kShiftThenDivide;
      return AddStep(to, step.scale, step.loc);
    case From::kCast:
      return Cast(step.dtype);
    case From::kClip:
      to.kind = To::kClip;
      to.a = step.low;
      to.b = step.high;
      SetWhole(dtype_, step.low, step.high, &to.least, &to.most);
      return AddStep(to);
    case From::kSign:
      to.kind = To::kSign;
      return AddStep(to);
    case From::kIsPositive:
      to.kind = To::kIsPositive;
      return AddStep(to);
    case From::kUnitInterval:
      RILL_RETURN_IF_ERROR(Cast(DType::kFloat32));
      return Divide255();
    case From::kChannelsFirst: {
      absl::InlinedVector<int, Shape::kMaxRank> dims;
      for (int d = 0; d < rank - 3; ++d) dims.push_back(d);
      dims.insert(dims.end(), {rank - 1, rank - 3, rank - 2});
      return Permute(dims);
    }
    case From::kCrop:
      RILL_RETURN_IF_ERROR(Slice(rank - 2, step.top, step.top + step.height));
      return Slice(rank - 1, step.left, step.left + step.width);
  }
  return Internal("DeviceRows::Add: kind: got an unknown one");
}

absl::Status DeviceRows::ScaleInDouble(absl::Span<const double> scale,
                                       absl::Span<const double> loc) {
  return AddStep({.kind = ElementStep::Kind::kScaleInDouble}, scale, loc);
}

absl::Status DeviceRows::Clip(absl::Span<const double> low,
                              absl::Span<const double> high) {
  return AddStep({.kind = ElementStep::Kind::kClip}, low, high);
}

absl::Status DeviceRows::Divide255() {
  return AddStep({.kind = ElementStep::Kind::kDivide255});
}

absl::Status DeviceRows::Cast(DType dtype) {
  if (dtype == dtype_) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(
      AddStep({.kind = ElementStep::Kind::kCast, .to = TypeOf(dtype)}));
  dtype_ = dtype;
  return absl::OkStatus();
}

absl::Status DeviceRows::SetView(absl::StatusOr<Tensor> view) {
  RILL_ASSIGN_OR_RETURN(view_, std::move(view));
  return absl::OkStatus();
}

absl::Status DeviceRows::FlushNumbers() {
  return has_numbers_ ? Flush() : absl::OkStatus();
}

absl::Status DeviceRows::Permute(absl::Span<const int> dims) {
  RILL_RETURN_IF_ERROR(FlushNumbers());
  absl::InlinedVector<int, Shape::kMaxRank> order;
  for (int d = 0; d < batch_rank_; ++d) order.push_back(d);
  for (const int dim : dims) order.push_back(batch_rank_ + dim);
  return SetView(view_.Permute(order));
}

absl::Status DeviceRows::Slice(int dim, int64_t begin, int64_t end) {
  RILL_RETURN_IF_ERROR(FlushNumbers());
  return SetView(view_.Slice(batch_rank_ + dim, begin, end));
}

absl::Status DeviceRows::Reshape(const Shape& shape) {
  const Shape whole = view_.shape().Prefix(batch_rank_).Concat(shape);
  absl::StatusOr<Tensor> view = view_.ViewAs(whole);
  if (view.ok()) {
    view_ = *std::move(view);
    return absl::OkStatus();
  }
  RILL_RETURN_IF_ERROR(Flush());
  return SetView(view_.ViewAs(whole));
}

absl::Status DeviceRows::Expand(const Shape& shape) {
  RILL_RETURN_IF_ERROR(FlushNumbers());
  return SetView(view_.Expand(view_.shape().Prefix(batch_rank_).Concat(shape)));
}

absl::Status DeviceRows::Flush() {
  RILL_ASSIGN_OR_RETURN(const Tensor to, call_->Take(dtype_, view_.shape()));
  RILL_RETURN_IF_ERROR(FinishInto(to));
  RILL_RETURN_IF_ERROR(copies_->Launch());
  view_ = to;
  gathered_ = {};
  steps_.clear();
  has_numbers_ = false;
  is_own_ = true;
  return absl::OkStatus();
}

absl::Status DeviceRows::Launch(
    DType dtype, const Shape& shape,
    absl::FunctionRef<absl::Status(const std::byte* from, std::byte* to,
                                   const Stream& stream)>
        launch) {
  if (!steps_.empty() || !view_.is_contiguous() || gathered_.rows != nullptr) {
    RILL_RETURN_IF_ERROR(Flush());
  }
  RILL_ASSIGN_OR_RETURN(
      const Tensor to,
      call_->Take(dtype, view_.shape().Prefix(batch_rank_).Concat(shape)));
  if (to.num_elements() > 0) {
    RILL_RETURN_IF_ERROR(
        launch(view_.raw_data(), to.raw_data(), call_->stream()));
  }
  view_ = to;
  dtype_ = dtype;
  is_own_ = true;
  return absl::OkStatus();
}

absl::Status DeviceRows::FinishInto(const Tensor& to) {
  return copies_->Add(view_, gathered_, to, steps_);
}

absl::StatusOr<Tensor> DeviceRows::Finish(bool is_in_place, bool shares) {
  const bool is_leaf = !is_own_ && view_.raw_data() == leaf_.raw_data() &&
                       dtype_ == leaf_.dtype();
  if (is_in_place && is_leaf &&
      MayReuse(leaf_, dtype_, view_.shape(), {},
               {.memory = {.device = leaf_.device(),
                           .memory_kind = MemoryKind::kDevice},
                .is_passed_in = true})) {
    if (!steps_.empty()) {
      RILL_RETURN_IF_ERROR(copies_->Add(leaf_, leaf_, steps_));
    }
    return leaf_;
  }
  // The batch may drop it.
  call_->Keep(leaf_);
  if (steps_.empty() && view_.is_contiguous() && (is_own_ || shares)) {
    return view_;
  }
  RILL_ASSIGN_OR_RETURN(Tensor to, call_->Take(dtype_, view_.shape()));
  RILL_RETURN_IF_ERROR(FinishInto(to));
  return to;
}

}  // namespace rill
