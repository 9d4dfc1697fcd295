// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/devices/device_batch.h"

#include <cstddef>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/current_stream.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::collectors_internal {

absl::StatusOr<std::unique_ptr<DeviceBatch>> DeviceBatch::Create(
    Options options, const TensorDict& step, const Stream& stream) {
  RILL_ASSIGN_OR_RETURN(Stream borrowed,
                        Stream::Borrow(stream.device(), stream.handle()));
  auto made = absl::WrapUnique(new DeviceBatch(
      step.batch_shape()[0], options.time, std::move(borrowed)));
  made->is_batch_there_ = options.storing_device == stream.device();
  // One leaf on the device is enough; BindSteps refuses others in host memory.
  bool steps_on_device = false;
  step.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    steps_on_device = steps_on_device || !leaf.is_host();
  });
  RILL_RETURN_IF_ERROR(made->MakeLeaves(options, steps_on_device));
  if (steps_on_device) {
    RILL_RETURN_IF_ERROR(made->BindSteps(options, step));
  }
  return made;
}

DeviceBatch::~DeviceBatch() { stream_.Synchronize().IgnoreError(); }

absl::Status DeviceBatch::MakeLeaves(const Options& options,
                                     bool steps_on_device) {
  const Shape shape = {lanes_, time_};
  const Tensor::Options pinned = {stream_.device(), MemoryKind::kPinned};
  // Pinned where batches are in host memory: the device scatters straight into
  // them.
  const Tensor::Options stored =
      options.storing_device.is_cpu()
          ? pinned
          : Tensor::Options{.device = options.storing_device};
  batch_ = TensorDict(shape);
  written_ = TensorDict(shape);
  for (const TensorDictSpec::Leaf& leaf : options.spec.leaves()) {
    const Shape whole = shape.Concat(leaf.spec.shape);
    RILL_ASSIGN_OR_RETURN(Tensor stored_leaf,
                          Tensor::Empty(leaf.spec.dtype, whole, stored));
    RILL_RETURN_IF_ERROR(batch_.Set(leaf.key, std::move(stored_leaf)));
    // Rows of steps never pass through written_.
    if (steps_on_device && options.step_spec.Find(leaf.key) != nullptr) {
      continue;
    }
    RILL_ASSIGN_OR_RETURN(Tensor host,
                          Tensor::Empty(leaf.spec.dtype, whole, pinned));
    RILL_RETURN_IF_ERROR(written_.Set(leaf.key, std::move(host)));
  }
  return absl::OkStatus();
}

absl::Status DeviceBatch::BindSteps(const Options& options,
                                    const TensorDict& step) {
  step_ = step;
  const int64_t rows = lanes_ * time_;
  for (const TensorDictSpec::Leaf& leaf : options.step_spec.leaves()) {
    RILL_ASSIGN_OR_RETURN(const Tensor from, step.Get(leaf.key));
    if (from.device() != stream_.device() || !from.is_contiguous()) {
      return InvalidArgument(
          "SyncCollector::Create: leaf \"", leaf.key, "\" of the steps: got ",
          from.is_contiguous() ? "" : "one that is not contiguous ", "on ",
          from.device().ToString(), ", want a contiguous one on ",
          stream_.device().ToString());
    }
    const Tensor& to = *batch_.Find(leaf.key);
    const int64_t width = to.size_bytes() / rows;
    if (width == 0) continue;
    step_columns_.push_back({.table = to.raw_data(),
                             .table_stride = width,
                             .batch = from.raw_data(),
                             .batch_stride = width,
                             .width = width});
  }
  // Rows of a whole lane: these leaves are complete at the end of a batch, so
  // one scatter of `lanes` wide rows moves all of them.
  written_.ForEachLeaf([&](absl::string_view key, const Tensor& from) {
    const int64_t width = from.size_bytes() / lanes_;
    if (width == 0) return;
    written_columns_.push_back({.table = batch_.Find(key)->raw_data(),
                                .table_stride = width,
                                .batch = from.raw_data(),
                                .batch_stride = width,
                                .width = width});
  });
  RILL_ASSIGN_OR_RETURN(ones_,
                        Tensor::Empty(DType::kBool, {lanes_},
                                      {stream_.device(), MemoryKind::kPinned}));
  // The flag true for as many rows as a scatter may have.
  std::memset(ones_.raw_data(), 1, static_cast<size_t>(lanes_));
  for (const absl::string_view key : {"next/truncated", "next/done"}) {
    RILL_ASSIGN_OR_RETURN(const Tensor to, batch_.Get(key));
    end_columns_.push_back({.table = to.raw_data(),
                            .table_stride = 1,
                            .batch = ones_.raw_data(),
                            .batch_stride = 1,
                            .width = 1});
  }
  return absl::OkStatus();
}

// To rows_.
absl::Status DeviceBatch::Scatter(absl::Span<const RowColumn> columns) {
  return stream_.backend()->ScatterRows(stream_.device().index, columns, rows_,
                                        stream_.handle());
}

absl::Status DeviceBatch::Begin() {
  if (is_batch_there_) {
    // The batch of before may still be read on the current stream, as a
    // write to a storage does.
    RILL_ASSIGN_OR_RETURN(const Stream current,
                          CurrentStream(stream_.device()));
    RILL_RETURN_IF_ERROR(stream_.WaitFor(current));
  }
  if (written_read_ == nullptr) return absl::OkStatus();
  const absl::Status done = written_read_->Synchronize();
  written_read_ = nullptr;
  return done;
}

// Step by step, so that a batch in pinned memory takes none of the device's.
absl::Status DeviceBatch::Record(int64_t t) {
  rows_.resize(lanes_);
  for (int64_t lane = 0; lane < lanes_; ++lane) rows_[lane] = lane * time_ + t;
  return Scatter(step_columns_);
}

absl::Status DeviceBatch::Truncate(int64_t t, absl::Span<const bool> done) {
  rows_.clear();
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (!done[lane]) rows_.push_back(lane * time_ + t);
  }
  return Scatter(end_columns_);
}

// From written_ to batch_: one row copy, or with steps in host memory a copy a
// leaf.
absl::Status DeviceBatch::EnqueueWritten() {
  if (records_on_device()) {
    rows_.resize(lanes_);
    for (int64_t lane = 0; lane < lanes_; ++lane) rows_[lane] = lane;
    return Scatter(written_columns_);
  }
  absl::Status status;
  written_.ForEachLeaf([&](absl::string_view key, const Tensor& from) {
    status.Update(batch_.Find(key)->CopyFromAsync(from, stream_));
  });
  return status;
}

absl::StatusOr<std::shared_ptr<const Event>> DeviceBatch::End() {
  absl::Status status = EnqueueWritten();
  if (status.ok()) {
    absl::StatusOr<Event> event = Event::Record(stream_);
    if (event.ok()) {
      written_read_ = std::make_shared<const Event>(*std::move(event));
      return written_read_;
    }
    status = event.status();
  }
  // Nobody could tell when written_ is free.
  stream_.Synchronize().IgnoreError();
  return status;
}

absl::Status DeviceBatch::Await() {
  // All of the stream is done, the copies with it.
  written_read_ = nullptr;
  return stream_.Synchronize();
}

}  // namespace rill::collectors_internal
