// SPDX-License-Identifier: Apache-2.0
// Where TensorDict's leaves lie: copies between devices and kinds of memory.
// Its lock and names of dimensions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/leaf_allocator.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using tensor_internal::LeafAllocator;

// Copies in the order of a device's stream, waited for once: the given stream
// if it is of that device, else the current one. Copies between devices go in
// the current one, behind the current stream of the other device.
class CopyQueue {
 public:
  explicit CopyQueue(const Stream* given) : given_(given) {}
  ~CopyQueue() { Finish().IgnoreError(); }
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;

  absl::Status Add(const Tensor& to, const Tensor& from) {
    const bool is_between = !to.device().is_cpu() && !from.device().is_cpu();
    bool is_direct = to.device().is_cpu() != from.device().is_cpu();
    if (is_between) {
      RILL_ASSIGN_OR_RETURN(is_direct, ReachesPeer(to.device(), from.device()));
    }
    // A plain copy waits by itself.
    if (!is_direct) return to.CopyFrom(from);
    const Device device = to.device().is_cpu() ? from.device() : to.device();
    RILL_ASSIGN_OR_RETURN(Tensor source, from.Contiguous());
    const bool wants_given =
        !is_between && given_ != nullptr && given_->device() == device;
    if (stream_ == nullptr || stream_->device() != device ||
        (stream_ == given_) != wants_given) {
      RILL_RETURN_IF_ERROR(Finish());
      if (wants_given) {
        stream_ = given_;
      } else {
        RILL_ASSIGN_OR_RETURN(current_, CurrentStream(device));
        stream_ = &*current_;
      }
    }
    if (is_between) {
      RILL_RETURN_IF_ERROR(WaitForPeer(from.device()));
    }
    // Both tensors are kept: the copy reads and writes their memory later.
    in_flight_.push_back(to);
    in_flight_.push_back(std::move(source));
    return to.CopyFromAsync(in_flight_.back(), *stream_);
  }

  absl::Status Finish() {
    if (stream_ == nullptr) return absl::OkStatus();
    absl::Status status = stream_->Synchronize();
    stream_ = nullptr;
    in_flight_.clear();
    for (const Peer& peer : peers_) {
      status.Update(peer.ready.IsComplete().status());
    }
    peers_.clear();
    return status;
  }

  // All but what goes on in the given stream; that is the caller's to keep.
  absl::StatusOr<std::vector<Tensor>> FinishOthers() {
    if (stream_ != given_) {
      RILL_RETURN_IF_ERROR(Finish());
    }
    stream_ = nullptr;
    return std::exchange(in_flight_, {});
  }

 private:
  // A device that is copied from, and the work before the copies there.
  struct Peer {
    Device device;
    Event ready;
  };

  absl::Status WaitForPeer(Device device) {
    for (const Peer& peer : peers_) {
      if (peer.device == device) return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(const Stream source, CurrentStream(device));
    RILL_ASSIGN_OR_RETURN(Event ready, Event::Record(source));
    RILL_RETURN_IF_ERROR(stream_->WaitFor(ready));
    peers_.push_back({device, std::move(ready)});
    return absl::OkStatus();
  }

  const Stream* const given_;  // May be null.
  std::optional<Stream> current_;
  const Stream* stream_ = nullptr;  // One of them; null without copies.
  std::vector<Tensor> in_flight_;   // Kept alive until the stream got there.
  std::vector<Peer> peers_;         // Of the copies since the last Finish.
};

}  // namespace

// Leaves that need a copy get one, small ones in one buffer; the others are
// shared. With a stream the copies may still run at the end: `in_flight` keeps
// their tensors alive.
absl::StatusOr<TensorDict> TensorDict::Internal::Moved(
    const TensorDict& dict, const Tensor::Options& options, const ShapeOp& op,
    absl::FunctionRef<bool(const Tensor&)> needs_copy, const Stream* stream,
    std::vector<Tensor>* in_flight) {
  LeafAllocator allocator(options);
  VisitTensors(dict, [&](const Tensor& leaf) {
    if (needs_copy(leaf)) allocator.Plan(leaf.dtype(), leaf.shape());
  });
  CopyQueue queue(stream);
  absl::StatusOr<TensorDict> moved =
      Map(dict, op, [&](const Tensor& leaf, auto&) -> absl::StatusOr<Tensor> {
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
  return Internal::Moved(
      *this, {device, MemoryKind::kPageable},
      {.sets_device = true, .device = device},
      [device](const Tensor& leaf) { return leaf.device() != device; });
}

absl::StatusOr<TensorDict> TensorDict::ToAsync(
    const Stream& stream, std::vector<Tensor>* in_flight) const {
  const Device device = stream.device();
  return Internal::Moved(
      *this, {device, MemoryKind::kPageable},
      {.sets_device = true, .device = device},
      [device](const Tensor& leaf) { return leaf.device() != device; }, &stream,
      in_flight);
}

void TensorDict::ClearDevice() {
  device_ = std::nullopt;
  for (Entry& entry : entries_) {
    if (entry.dict() != nullptr) entry.dict()->ClearDevice();
    if (entry.other() == nullptr) continue;
    const auto same = [](const Tensor& leaf, auto&) {
      return absl::StatusOr<Tensor>(leaf);
    };
    auto cleared =
        entry.other()->Map({.sets_device = true}, same, {nullptr, entry.name});
    if (cleared.ok()) entry.value = *std::move(cleared);  // As it always is.
  }
}

absl::StatusOr<TensorDict> TensorDict::Pin(Device device) const {
  return Internal::Moved(
      *this, {device, MemoryKind::kPinned}, {},
      [](const Tensor& leaf) { return leaf.is_host() && !leaf.is_pinned(); });
}

absl::StatusOr<TensorDict> TensorDict::Clone() const {
  LeafAllocator allocator{Tensor::Options()};
  Internal::VisitTensors(*this, [&](const Tensor& leaf) {
    if (leaf.is_host()) allocator.Plan(leaf.dtype(), leaf.shape());
  });
  return Internal::Map(
      *this, {}, [&](const Tensor& leaf, auto&) -> absl::StatusOr<Tensor> {
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
    return InvalidArgument("TensorDict::ToDType: dtype: got ", DTypeName(dtype),
                           ", want a real floating one");
  }
  return Internal::Map(
      *this, {}, [&](const Tensor& leaf, auto&) -> absl::StatusOr<Tensor> {
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

void TensorDict::Lock() { Internal::SetLocked(this, true); }
void TensorDict::Unlock() { Internal::SetLocked(this, false); }

void TensorDict::Internal::SetLocked(TensorDict* dict, bool locked) {
  dict->locked_ = locked;
  for (const Entry& entry : dict->entries_) {
    if (entry.dict() != nullptr) SetLocked(entry.dict(), locked);
  }
}

// The names after an operation; null where none is left, so that dictionaries
// without names carry no list.
TensorDict::Internal::Names TensorDict::Internal::ChangedNames(
    std::vector<std::string> names, const ShapeOp& op) {
  switch (op.kind) {
    case ShapeOp::kCopy:
    case ShapeOp::kSlice:
    case ShapeOp::kRows:
      break;
    case ShapeOp::kSelect:
      names.erase(names.begin() + op.dim);
      break;
    case ShapeOp::kUnsqueeze:
    case ShapeOp::kStack:
      names.insert(names.begin() + op.dim, "");
      break;
    case ShapeOp::kOpaque:
      return nullptr;
  }
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  if (std::all_of(names.begin(), names.end(), is_empty)) return nullptr;
  return std::make_shared<const std::vector<std::string>>(std::move(names));
}

void TensorDict::Internal::CopyLabels(const TensorDict& from, const ShapeOp& op,
                                      TensorDict* to) {
  to->device_ = from.device_;
  to->dim_names_ = NamesAfter(from.dim_names_, op);
  for (size_t i = 0; i < from.entries_.size(); ++i) {
    if (const TensorDict* nested = from.entries_[i].dict()) {
      CopyLabels(*nested, op, FindHere(*to, from.entries_[i].name, i)->dict());
    }
  }
}

absl::Status TensorDict::SetDimNames(std::vector<std::string> names) {
  if (static_cast<int>(names.size()) != batch_shape_.rank()) {
    return InvalidArgument("TensorDict::SetDimNames: number of names: got ",
                           names.size(), ", want ", batch_shape_.rank(),
                           " of batch shape ", batch_shape_.ToString());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && std::find(names.begin() + i + 1, names.end(),
                                       names[i]) != names.end()) {
      return InvalidArgument("TensorDict::SetDimNames: name: got \"", names[i],
                             "\" twice, want it once");
    }
  }
  dim_names_ = Internal::ChangedNames(std::move(names), {});
  return absl::OkStatus();
}

const std::vector<std::string>& TensorDict::dim_names() const {
  static const auto* const kNone = new std::vector<std::string>;
  return dim_names_ == nullptr ? *kNone : *dim_names_;
}

absl::StatusOr<int> TensorDict::DimNamed(absl::string_view name) const {
  const std::vector<std::string>& names = dim_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end() && !name.empty()) {
    return static_cast<int>(found - names.begin());
  }
  return NotFound(
      "TensorDict::DimNamed: no dimension \"", name,
      "\", there are: ", names.empty() ? "none" : absl::StrJoin(names, ", "));
}

}  // namespace rill
