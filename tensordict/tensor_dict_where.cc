// SPDX-License-Identifier: Apache-2.0
// Where TensorDict's leaves lie: copies between devices and kinds of memory.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/leaf_allocator.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"

namespace rill {
namespace {

using tensordict_internal::LeafAllocator;

// Copies in the order of a stream, waited for once: of a device's default one,
// or, between the host and its device, of the given one. Copies of both kinds
// may be under way together.
class CopyQueue {
 public:
  explicit CopyQueue(const Stream* given) : given_(given) {}
  ~CopyQueue() { Finish().IgnoreError(); }
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;

  absl::Status Add(const Tensor& to, const Tensor& from) {
    // On one side: a plain copy, which waits by itself.
    if (to.device().is_cpu() == from.device().is_cpu()) {
      return to.CopyFrom(from);
    }
    const Device device = to.device().is_cpu() ? from.device() : to.device();
    RILL_ASSIGN_OR_RETURN(Tensor source, from.Contiguous());
    if (given_ != nullptr && given_->device() == device) {
      // Both tensors are kept: the copy reads and writes their memory later.
      in_flight_of_given_.push_back(to);
      in_flight_of_given_.push_back(std::move(source));
      return to.CopyFromAsync(in_flight_of_given_.back(), *given_);
    }
    if (!stream_.has_value() || stream_->device() != device) {
      RILL_RETURN_IF_ERROR(Finish());
      RILL_ASSIGN_OR_RETURN(stream_, Stream::Default(device));
    }
    in_flight_.push_back(to);
    in_flight_.push_back(std::move(source));
    return to.CopyFromAsync(in_flight_.back(), *stream_);
  }

  absl::Status Finish() {
    absl::Status status;
    if (!in_flight_of_given_.empty()) status = given_->Synchronize();
    in_flight_of_given_.clear();
    if (!stream_.has_value()) return status;
    status.Update(stream_->Synchronize());
    stream_.reset();
    in_flight_.clear();
    return status;
  }

  // All but what goes on in the given stream; that is the caller's to keep.
  absl::StatusOr<std::vector<Tensor>> FinishOthers() {
    std::vector<Tensor> in_flight = std::move(in_flight_of_given_);
    in_flight_of_given_.clear();
    if (absl::Status status = Finish(); !status.ok()) {
      given_->Synchronize().IgnoreError();
      return status;
    }
    return in_flight;
  }

 private:
  const Stream* const given_;  // May be null.
  std::vector<Tensor> in_flight_of_given_;
  std::optional<Stream> stream_;
  std::vector<Tensor> in_flight_;  // Kept alive until the stream got there.
};

}  // namespace

// Leaves that need a copy get one, small ones in one buffer; the others are
// shared. With a stream the copies may still run at the end: `in_flight` keeps
// their tensors alive.
absl::StatusOr<TensorDict> TensorDict::Internal::Moved(
    const TensorDict& dict, const Tensor::Options& options,
    absl::FunctionRef<bool(const Tensor&)> needs_copy, const Stream* stream,
    std::vector<Tensor>* in_flight) {
  LeafAllocator allocator(options);
  VisitTensors(dict, [&](const Tensor& leaf) {
    if (needs_copy(leaf)) allocator.Plan(leaf.dtype(), leaf.shape());
  });
  CopyQueue queue(stream);
  absl::StatusOr<TensorDict> moved =
      Map(dict, dict.batch_shape_, dict.batch_shape_.rank(), {ShapeOp::kCopy},
          [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
            if (!needs_copy(leaf)) return leaf;
            RILL_ASSIGN_OR_RETURN(Tensor copy,
                                  allocator.Make(leaf.dtype(), leaf.shape()));
            RILL_RETURN_IF_ERROR(queue.Add(copy, leaf));
            return copy;
          });
  if (stream == nullptr || !moved.ok()) {
    RILL_RETURN_IF_ERROR(queue.Finish());
    return moved;
  }
  RILL_ASSIGN_OR_RETURN(*in_flight, queue.FinishOthers());
  return moved;
}

absl::StatusOr<TensorDict> TensorDict::To(Device device) const {
  RILL_ASSIGN_OR_RETURN(TensorDict moved,
                        Internal::Moved(*this, {device, MemoryKind::kPageable},
                                        [device](const Tensor& leaf) {
                                          return leaf.device() != device;
                                        }));
  Internal::SetDevice(&moved, device);
  return moved;
}

absl::StatusOr<TensorDict> TensorDict::ToAsync(
    const Stream& stream, std::vector<Tensor>* in_flight) const {
  const Device device = stream.device();
  RILL_ASSIGN_OR_RETURN(
      TensorDict moved,
      Internal::Moved(
          *this, {device, MemoryKind::kPageable},
          [device](const Tensor& leaf) { return leaf.device() != device; },
          &stream, in_flight));
  Internal::SetDevice(&moved, device);
  return moved;
}

void TensorDict::ClearDevice() { Internal::SetDevice(this, std::nullopt); }

LazyStack LazyStack::WithDevice(std::optional<Device> device) const {
  Members changed = *members_;
  for (TensorDict& member : changed) {
    TensorDict::Internal::SetDevice(&member, device);
  }
  return LazyStack(std::move(changed), member_shape(), stack_dim_);
}

void TensorDict::Internal::SetDevice(TensorDict* dict,
                                     std::optional<Device> device) {
  dict->device_ = device;
  for (Entry& entry : dict->entries_) {
    if (entry.dict() != nullptr) SetDevice(entry.dict(), device);
    if (const LazyStack* stack = entry.lazy_stack()) {
      entry.value = ValueOf(stack->WithDevice(device));
    }
  }
}

absl::StatusOr<TensorDict> TensorDict::Pin(Device device) const {
  return Internal::Moved(
      *this, {device, MemoryKind::kPinned},
      [](const Tensor& leaf) { return leaf.is_host() && !leaf.is_pinned(); });
}

absl::StatusOr<TensorDict> TensorDict::Clone() const {
  LeafAllocator allocator{Tensor::Options()};
  Internal::VisitTensors(*this, [&](const Tensor& leaf) {
    if (leaf.is_host()) allocator.Plan(leaf.dtype(), leaf.shape());
  });
  return Internal::Map(
      *this, batch_shape_, batch_shape_.rank(), {ShapeOp::kCopy},
      [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        if (!leaf.is_host()) return leaf.Clone();
        RILL_ASSIGN_OR_RETURN(Tensor copy,
                              allocator.Make(leaf.dtype(), leaf.shape()));
        RILL_RETURN_IF_ERROR(copy.CopyFrom(leaf));
        return copy;
      });
}

absl::StatusOr<TensorDict> TensorDict::ToDType(DType dtype) const {
  const auto is_floating = [](DType type) {
    return type == DType::kFloat16 || type == DType::kBFloat16 ||
           type == DType::kFloat32 || type == DType::kFloat64;
  };
  if (!is_floating(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("TensorDict::ToDType: dtype: got ", DTypeName(dtype),
                     ", want a real floating one"));
  }
  return Internal::Map(*this, batch_shape_, batch_shape_.rank(),
                       {ShapeOp::kCopy},
                       [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
                         if (!is_floating(leaf.dtype())) return leaf;
                         return Cast(leaf, dtype);
                       });
}

bool TensorDict::is_pinned() const {
  bool has_leaf = false;
  bool all_pinned = true;
  Internal::VisitTensors(*this, [&](const Tensor& leaf) {
    has_leaf = true;
    all_pinned = all_pinned && leaf.is_pinned();
  });
  return has_leaf && all_pinned;
}

int64_t TensorDict::size_bytes() const {
  int64_t bytes = 0;
  Internal::VisitTensors(
      *this, [&](const Tensor& leaf) { bytes += leaf.size_bytes(); });
  return bytes;
}

}  // namespace rill
