// SPDX-License-Identifier: Apache-2.0
// An operation is given to the stream twice over: at once it is run on zeros in
// host memory, which says what shapes its results have. Then a kernel that runs
// in its turn copies the operands from the device's memory, does the same on
// these, and copies the results back.
#include "rill/libtorch/testing/fake_torch_kernels.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ATen/EmptyTensor.h"
#include "ATen/Functions.h"
#include "ATen/core/dispatch/Dispatcher.h"
#include "ATen/core/ivalue.h"
#include "ATen/core/stack.h"
#include "ATen/ops/_reshape_alias_native.h"
#include "ATen/ops/as_strided_native.h"
#include "ATen/ops/view_native.h"
#include "absl/log/absl_check.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "c10/core/Allocator.h"
#include "c10/core/InferenceMode.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/libtorch/deferred_release.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/torch_stream.h"
#include "torch/library.h"

namespace rill::libtorch_internal {
namespace {

using Stack = torch::jit::Stack;

constexpr auto kFakeType = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet kFakeKeys(c10::DispatchKey::PrivateUse1);

void Check(const absl::Status& status) {
  TORCH_CHECK(status.ok(), status.message());
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

FakeBackend& Fake() {
  return static_cast<FakeBackend&>(*Check(GetBackend(Device::Fake())));
}

Stream StreamOf(c10::Device device) {
  return Check(CurrentTorchStream(Device::Fake(device.index())));
}

// --- Memory ------------------------------------------------------------------

// Memory of one device, which goes behind the work of torch's current stream.
class FakeAllocator final : public c10::Allocator {
 public:
  explicit FakeAllocator(c10::DeviceIndex index) : device_(kFakeType, index) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, device_};
    auto buffer = Check(Buffer::Allocate(static_cast<int64_t>(bytes),
                                         Device::Fake(device_.index()),
                                         MemoryKind::kDevice));
    void* const data = buffer->data();
    return {data, new std::shared_ptr<Buffer>(std::move(buffer)), &Release,
            device_};
  }
  void copy_data(void* /*to*/, const void* /*from*/,
                 size_t /*bytes*/) const override {
    TORCH_CHECK(false, "FakeAllocator::copy_data: the fake device has none");
  }

 private:
  static void Release(void* held) {
    const std::unique_ptr<std::shared_ptr<Buffer>> buffer(
        static_cast<std::shared_ptr<Buffer>*>(held));
    const c10::Device device(
        kFakeType, static_cast<c10::DeviceIndex>((*buffer)->device().index));
    ReleaseBehind(std::move(*buffer), StreamOf(device));
  }

  const c10::Device device_;
};

c10::Allocator* AllocatorOf(std::optional<c10::Device> device) {
  static FakeAllocator* const allocators[] = {new FakeAllocator(0),
                                              new FakeAllocator(1)};
  return allocators[device.has_value() && device->index() > 0];
}

at::Tensor Empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device,
                 std::optional<bool> /*pin_memory*/,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, AllocatorOf(device), kFakeKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride,
                        std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> /*layout*/,
                        std::optional<at::Device> device,
                        std::optional<bool> /*pin_memory*/) {
  return at::detail::empty_strided_generic(size, stride, AllocatorOf(device),
                                           kFakeKeys,
                                           c10::dtype_or_default(dtype));
}

// --- Operations --------------------------------------------------------------

// The bytes of a tensor of the device, as a kernel finds them.
struct Place {
  FakeBackend::Range range;
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype;
  // In host memory: what the operation reads, or null of a result.
  at::Tensor stand_in = {};
  bool is_written = false;

  at::Tensor At(std::byte* bytes) const {
    return at::from_blob(bytes, sizes, strides, dtype);
  }
};

Place PlaceOf(const at::Tensor& tensor) {
  int64_t elements = tensor.numel() == 0 ? 0 : 1;
  for (int64_t d = 0; elements > 0 && d < tensor.dim(); ++d) {
    elements += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return {.range = {tensor.const_data_ptr(),
                    elements * static_cast<int64_t>(tensor.itemsize())},
          .sizes = tensor.sizes().vec(),
          .strides = tensor.strides().vec(),
          .dtype = tensor.scalar_type()};
}

// One operation: its arguments, with tensors in host memory for those of the
// device.
class Operation {
 public:
  explicit Operation(const c10::OperatorHandle& op) : op_(op) {}

  // Takes the arguments, and gives results of the right shapes.
  Stack Take(at::ArrayRef<c10::IValue> arguments) {
    const c10::InferenceMode no_autograd;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const c10::AliasInfo* const alias =
          op_.schema().arguments()[i].alias_info();
      is_written_ = alias != nullptr && alias->isWrite();
      arguments_.push_back(StandIn(arguments[i]));
    }
    Stack results = Run();
    for (const Place& place : places_) {
      TORCH_CHECK(place.stand_in.sizes() == at::IntArrayRef(place.sizes),
                  op_.schema().name(), ": the fake device resizes no tensor");
    }
    return results;
  }

  // A tensor of the device for one of the results.
  at::Tensor Make(const at::Tensor& result) {
    if (!result.defined()) return result;
    at::Tensor made = at::empty_strided(result.sizes(), result.strides(),
                                        result.options().device(*device_));
    places_.push_back(PlaceOf(made));
    return made;
  }

  void Launch() && {
    const c10::Device device = *device_;
    std::vector<FakeBackend::Range> ranges;
    for (const Place& place : places_) {
      if (place.range.bytes > 0) ranges.push_back(place.range);
    }
    Check(Fake().Launch(
        device.index(), StreamOf(device).handle(), std::move(ranges),
        [self = std::move(*this)](absl::Span<std::byte* const> bytes) {
          const absl::Status done = CallTorch(
              [&] {
                self.RunOn(bytes);
                return absl::OkStatus();
              },
              self.op_.schema().name(), " on the fake device");
          ABSL_CHECK(done.ok()) << done;
        }));
  }

 private:
  at::Tensor StandIn(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (tensor.device().type() != kFakeType) {
      // As other devices, which take single numbers of the CPU.
      TORCH_CHECK(tensor.dim() == 0, op_.schema().name(),
                  ": Expected all tensors to be on the same device, but found "
                  "at least two devices, ",
                  tensor.device(), " and fake!");
      return tensor;
    }
    if (!device_.has_value()) device_ = tensor.device();
    TORCH_CHECK(*device_ == tensor.device(), op_.schema().name(),
                ": Expected all tensors to be on the same device, but found at "
                "least two devices, ",
                tensor.device(), " and ", *device_, "!");
    places_.push_back(PlaceOf(tensor));
    places_.back().is_written = is_written_;
    places_.back().stand_in = at::zeros(tensor.sizes(), tensor.scalar_type());
    return places_.back().stand_in;
  }

  c10::IValue StandIn(const c10::IValue& value) {
    if (value.isTensor()) return StandIn(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        list.push_back(StandIn(tensor));
      }
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor.has_value()
                           ? std::optional<at::Tensor>(StandIn(*tensor))
                           : std::nullopt);
      }
      return list;
    }
    if (value.isDevice()) {
      device_ = value.toDevice();
      return c10::Device(c10::kCPU);
    }
    return value;
  }

  Stack Run() const {
    Stack stack = arguments_;
    op_.callBoxed(&stack);
    return stack;
  }

  // `bytes` are of the places that have some.
  void RunOn(absl::Span<std::byte* const> bytes) const {
    const c10::InferenceMode no_autograd;
    std::vector<at::Tensor> there;
    for (const Place& place : places_) {
      const bool has_bytes = place.range.bytes > 0;
      there.push_back(place.At(has_bytes ? bytes.front() : nullptr));
      if (has_bytes) bytes.remove_prefix(1);
      if (place.stand_in.defined()) place.stand_in.copy_(there.back());
    }
    std::vector<at::Tensor> made;
    const Stack results = Run();
    for (size_t i = 0; i < results.size(); ++i) {
      if (op_.schema().returns()[i].alias_info() != nullptr) continue;
      const std::vector<at::Tensor> each =
          results[i].isTensorList()
              ? results[i].toTensorVector()
              : std::vector<at::Tensor>{results[i].toTensor()};
      for (const at::Tensor& tensor : each) {
        if (tensor.defined()) made.push_back(tensor);
      }
    }
    size_t next = 0;
    for (size_t i = 0; i < places_.size(); ++i) {
      const bool is_result = !places_[i].stand_in.defined();
      if (is_result) there[i].copy_(made[next++]);
      if (places_[i].is_written) there[i].copy_(places_[i].stand_in);
    }
  }

  const c10::OperatorHandle op_;
  std::optional<c10::Device> device_;
  Stack arguments_;
  bool is_written_ = false;  // The argument at hand.
  std::vector<Place> places_;
};

// Any operation without a kernel of its own.
void RunBoxed(const c10::OperatorHandle& op, Stack* stack) {
  const auto& schema = op.schema();
  const Stack arguments =
      torch::jit::last(*stack, schema.arguments().size()).vec();
  torch::jit::drop(*stack, arguments.size());
  Operation operation(op);
  const Stack results = operation.Take(arguments);
  for (size_t i = 0; i < results.size(); ++i) {
    const c10::AliasInfo* const alias = schema.returns()[i].alias_info();
    if (alias == nullptr) {
      if (results[i].isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& each : results[i].toTensorVector()) {
          list.push_back(operation.Make(each));
        }
        stack->push_back(list);
      } else {
        stack->push_back(operation.Make(results[i].toTensor()));
      }
      continue;
    }
    TORCH_CHECK(alias->isWrite(), schema.name(),
                ": the fake device has no such view");
    for (size_t a = 0; a < arguments.size(); ++a) {
      const c10::AliasInfo* const of = schema.arguments()[a].alias_info();
      if (of != nullptr && *of == *alias) stack->push_back(arguments[a]);
    }
  }
  std::move(operation).Launch();
}

// --- Copies ------------------------------------------------------------------

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to,
                    bool non_blocking) {
  if (from.device() == to.device()) {
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
    Operation operation(op);
    operation.Take({to, from, non_blocking});
    std::move(operation).Launch();
    return to;
  }
  const bool is_to_device = to.device().type() == kFakeType;
  TORCH_CHECK(is_to_device ? from.is_cpu() : to.is_cpu(),
              "copy_: the fake devices copy from and to the CPU");
  const Stream stream = StreamOf(is_to_device ? to.device() : from.device());
  // The host's side as the device's is: of one dtype, without gaps.
  const at::Tensor& device = is_to_device ? to : from;
  const at::Tensor there = is_to_device && !to.is_contiguous()
                               ? at::empty(to.sizes(), to.options())
                               : device.contiguous();
  const at::Tensor here =
      is_to_device ? from.to(to.scalar_type()).expand(to.sizes()).contiguous()
                   : at::empty(from.sizes(), from.options().device(c10::kCPU));
  if (here.numel() > 0) {
    const auto bytes = static_cast<int64_t>(here.nbytes());
    Check(is_to_device ? CopyAsync(there.mutable_data_ptr(),
                                   here.const_data_ptr(), bytes, stream)
                       : CopyAsync(here.mutable_data_ptr(),
                                   there.const_data_ptr(), bytes, stream));
    if (!is_to_device || !non_blocking || !here.is_same(from)) {
      Check(stream.Synchronize());
    }
  }
  if (!is_to_device) to.copy_(here);
  if (is_to_device && !there.is_same(to)) to.copy_(there);
  return to;
}

at::Scalar ItemOf(const at::Tensor& tensor) { return tensor.cpu().item(); }

}  // namespace

void RegisterFakeTorchKernels() {
  // Torch wants them for good, and does not hold them.
  static auto& all =
      *new torch::Library(torch::Library::IMPL, "_",
                          c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&RunBoxed>());
  static auto& some =
      *new torch::Library(torch::Library::IMPL, "aten",
                          c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  some.impl("empty.memory_format", TORCH_FN(Empty));
  some.impl("empty_strided", TORCH_FN(EmptyStrided));
  some.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  some.impl("view", TORCH_FN(at::native::view));
  some.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  some.impl("_copy_from", TORCH_FN(CopyFrom));
  some.impl("_local_scalar_dense", TORCH_FN(ItemOf));
}

}  // namespace rill::libtorch_internal
