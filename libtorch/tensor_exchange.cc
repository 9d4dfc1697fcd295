// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/tensor_exchange.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/from_blob.h"
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "c10/core/ScalarType.h"
#include "c10/core/impl/COW.h"
#include "c10/core/impl/DeviceGuardImplInterface.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/libtorch/deferred_release.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/torch_stream.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

// A number a dimension, in elements or bytes.
using Strides = std::array<int64_t, Shape::kMaxRank>;

// In the order of DType.
constexpr c10::ScalarType kScalarTypes[] = {
    c10::kBool,   c10::kByte,         c10::kChar,         c10::kShort,
    c10::kInt,    c10::kLong,         c10::kHalf,         c10::kBFloat16,
    c10::kFloat,  c10::kDouble,       c10::kUInt16,       c10::kUInt32,
    c10::kUInt64, c10::kComplexFloat, c10::kComplexDouble};
static_assert(std::size(kScalarTypes) == kNumDTypes);

std::optional<DType> DTypeOfScalar(c10::ScalarType scalar) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kScalarTypes[i] == scalar) return static_cast<DType>(i);
  }
  return std::nullopt;
}

struct Place {
  Device device;
  MemoryKind kind;
};

absl::StatusOr<Place> PlaceOf(const at::Tensor& tensor) {
  const c10::Device at = tensor.device();
  if (at.is_cpu()) {
    // Whether it is pinned is a question to CUDA's driver.
    const bool is_pinned =
        c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA) &&
        tensor.is_pinned();
    return Place{Device::Cpu(),
                 is_pinned ? MemoryKind::kPinned : MemoryKind::kPageable};
  }
  RILL_ASSIGN_OR_RETURN(const Device device, DeviceOfTorch(at));
  if (absl::Status status = GetBackend(device).status(); !status.ok()) {
    return FailedPrecondition("device: got ", at.str(), ": ", status.message());
  }
  return Place{device, MemoryKind::kDevice};
}

// An error begins with "ToTorch: " or "ToTorch: \"key\": ".
absl::Status WithKey(const absl::Status& status, absl::string_view caller,
                     const absl::string_view* key) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      key == nullptr
          ? absl::StrCat(caller, ": ", status.message())
          : absl::StrCat(caller, ": \"", *key, "\": ", status.message()));
}

// --- To torch ----------------------------------------------------------------

// A tensor of torch holds this: the bytes, and the stream whose work reads them
// where they are a device's.
struct Held {
  std::shared_ptr<Buffer> buffer;
  std::optional<Stream> stream;
};

void Release(void* context) {
  const std::unique_ptr<Held> held(static_cast<Held*>(context));
  if (held->stream.has_value()) {
    libtorch_internal::ReleaseBehind(std::move(held->buffer), *held->stream);
  }
}

absl::Status StrideError(const Tensor& tensor) {
  return InvalidArgument("byte strides of ", DTypeName(tensor.dtype()),
                         tensor.shape().ToString(), ": got [",
                         absl::StrJoin(tensor.strides_bytes(), ", "),
                         "], want multiples of ", DTypeSize(tensor.dtype()),
                         ", none below 0; use Contiguous() first");
}

absl::StatusOr<at::Tensor> Share(const Tensor& tensor) {
  if (!tensor.is_valid()) {
    return InvalidArgument(
        "tensor: got one without a buffer, want a valid one");
  }
  if (!tensor.is_writable()) {
    return InvalidArgument(DTypeName(tensor.dtype()), tensor.shape().ToString(),
                           ": got a read-only tensor, want one that may be "
                           "written; use Clone()");
  }
  RILL_ASSIGN_OR_RETURN(const c10::Device device, TorchDevice(tensor.device()));
  std::unique_ptr<Held> held(new Held{tensor.buffer(), std::nullopt});
  if (!tensor.is_host()) {
    RILL_ASSIGN_OR_RETURN(held->stream, CurrentTorchStream(tensor.device()));
  }
  const int rank = tensor.rank();
  auto maker = at::for_blob(tensor.raw_data(), {tensor.shape().sizes().data(),
                                                static_cast<size_t>(rank)});
  Strides strides;
  if (!tensor.is_contiguous()) {
    const int64_t item_bytes = DTypeSize(tensor.dtype());
    for (int d = 0; d < rank; ++d) {
      // No step is ever taken along a dimension of size 1.
      const int64_t bytes =
          tensor.shape()[d] == 1 ? item_bytes : tensor.strides_bytes()[d];
      if (bytes < 0 || bytes % item_bytes != 0) return StrideError(tensor);
      strides[d] = bytes / item_bytes;
    }
    maker.strides(at::IntArrayRef(strides.data(), static_cast<size_t>(rank)));
  }
  return maker.context(held.release(), &Release)
      .target_device(device)
      .options(at::TensorOptions()
                   .dtype(kScalarTypes[static_cast<int>(tensor.dtype())])
                   .device(device))
      .make_tensor();
}

// That all entries are tensors, or dictionaries of them.
absl::Status CheckEntries(const TensorDict& dict, const std::string& parent) {
  absl::Status status;
  dict.ForEachEntry([&](absl::string_view name, EntryKind kind) {
    if (kind == EntryKind::kTensor || !status.ok()) return;
    if (kind == EntryKind::kDict) {
      status =
          CheckEntries(*dict.FindDict(name), absl::StrCat(parent, name, "/"));
      return;
    }
    status = InvalidArgument(
        "ToTorch: \"", parent, name, "\": got ",
        kind == EntryKind::kLazyStack ? "a lazy stack"
        : kind == EntryKind::kRagged  ? "a ragged tensor"
                                      : "a value that is no tensor",
        ", want a tensor; ",
        kind == EntryKind::kLazyStack ? "make it dense with ToDense(), or "
                                      : "",
        "Select the keys that torch reads");
  });
  return status;
}

// --- From torch --------------------------------------------------------------

// Why these bytes are not those of a plain tensor; null where they are.
const char* Obstacle(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor, want a defined one";
  if (tensor.layout() != c10::kStrided || tensor.is_nested()) {
    return "a layout that is not strided, want a dense tensor; use to_dense()";
  }
  if (tensor.requires_grad()) {
    return "a tensor that requires a gradient, which would not see what is "
           "written; use detach()";
  }
  if (tensor.is_conj()) {
    return "a tensor that is conjugated lazily; use resolve_conj()";
  }
  if (tensor.is_neg()) {
    return "a tensor that is negated lazily; use resolve_neg()";
  }
  if (!tensor.has_storage() ||
      (tensor.numel() > 0 && tensor.storage().data() == nullptr)) {
    return "a tensor without bytes of its own (meta, zero or batched), want "
           "one with elements; use clone()";
  }
  if (c10::impl::cow::is_cow_data_ptr(tensor.storage().data_ptr())) {
    return "a tensor that copies itself when it is written; use clone()";
  }
  return nullptr;
}

absl::StatusOr<Tensor> Share(const at::Tensor& tensor) {
  if (const char* obstacle = Obstacle(tensor); obstacle != nullptr) {
    return InvalidArgument("got ", obstacle);
  }
  const std::optional<DType> dtype = DTypeOfScalar(tensor.scalar_type());
  if (!dtype.has_value()) {
    return InvalidArgument("dtype: got ", c10::toString(tensor.scalar_type()),
                           ", want one that Rill has; use to(at::kFloat)");
  }
  RILL_ASSIGN_OR_RETURN(const Place place, PlaceOf(tensor));
  RILL_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(absl::MakeConstSpan(tensor.sizes().data(), tensor.dim())));
  const int64_t item_bytes = DTypeSize(*dtype);
  // Strides of torch are never below 0, and fit with the storage.
  Strides strides;
  int64_t bytes = item_bytes;
  for (int d = 0; d < shape.rank(); ++d) {
    strides[d] = tensor.strides()[d] * item_bytes;
    bytes += (shape[d] - 1) * strides[d];
  }
  if (shape.num_elements() == 0) bytes = 0;
  const c10::Storage& storage = tensor.storage();
  storage.unsafeGetStorageImpl()->set_resizable(false);
  return Tensor::View(
      Buffer::Wrap(const_cast<void*>(tensor.const_data_ptr()), bytes,
                   place.device, place.kind,
                   std::make_shared<const c10::Storage>(storage)),
      *dtype, shape, /*offset_bytes=*/0,
      absl::MakeConstSpan(strides.data(), shape.rank()));
}

}  // namespace

absl::StatusOr<at::Tensor> ToTorch(const Tensor& tensor) {
  return CallTorch(
      [&]() -> absl::StatusOr<at::Tensor> {
        absl::StatusOr<at::Tensor> shared = Share(tensor);
        if (!shared.ok()) return WithKey(shared.status(), "ToTorch", nullptr);
        return shared;
      },
      "ToTorch");
}

absl::StatusOr<TorchTensors> ToTorch(const TensorDict& dict) {
  RILL_RETURN_IF_ERROR(CheckEntries(dict, ""));
  return CallTorch(
      [&]() -> absl::StatusOr<TorchTensors> {
        TorchTensors tensors;
        tensors.reserve(static_cast<size_t>(dict.num_leaves()));
        absl::Status status;
        dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
          if (!status.ok()) return;
          absl::StatusOr<at::Tensor> shared = Share(leaf);
          if (!shared.ok()) {
            status = WithKey(shared.status(), "ToTorch", &key);
            return;
          }
          tensors.insert(std::string(key), *std::move(shared));
        });
        if (!status.ok()) return status;
        return tensors;
      },
      "ToTorch");
}

absl::StatusOr<TorchTensors> ToTorch(
    const TensorDict& batch, const std::shared_ptr<const Event>& copied) {
  RILL_ASSIGN_OR_RETURN(TorchTensors tensors, ToTorch(batch));
  if (copied == nullptr) return tensors;
  std::vector<Device> behind;
  absl::Status status;
  batch.ForEachLeaf([&](absl::string_view /*key*/, const Tensor& leaf) {
    // Pinned memory, which the device may write, is the CPU's.
    const Device device = leaf.device();
    if (!status.ok() || absl::c_linear_search(behind, device)) return;
    behind.push_back(device);
    if (device.is_cpu()) {
      status = copied->Synchronize();
      return;
    }
    const absl::StatusOr<Stream> stream = CurrentTorchStream(device);
    status = stream.ok() ? stream->WaitFor(*copied) : stream.status();
  });
  if (!status.ok()) return status;
  return tensors;
}

absl::StatusOr<Tensor> FromTorch(const at::Tensor& tensor) {
  return CallTorch(
      [&]() -> absl::StatusOr<Tensor> {
        absl::StatusOr<Tensor> shared = Share(tensor);
        if (!shared.ok()) return WithKey(shared.status(), "FromTorch", nullptr);
        return shared;
      },
      "FromTorch");
}

absl::StatusOr<TensorDict> FromTorch(const TorchTensors& tensors,
                                     const Shape& batch_shape) {
  return CallTorch(
      [&]() -> absl::StatusOr<TensorDict> {
        TensorDict dict(batch_shape);
        for (const auto& item : tensors) {
          const absl::string_view key = item.key();
          absl::StatusOr<Tensor> shared = Share(item.value());
          if (!shared.ok()) return WithKey(shared.status(), "FromTorch", &key);
          RILL_RETURN_IF_ERROR(dict.Set(key, *std::move(shared)));
        }
        return dict;
      },
      "FromTorch");
}

}  // namespace rill
