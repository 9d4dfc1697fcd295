// SPDX-License-Identifier: Apache-2.0
// Managed tensors with fields from outside over a small real buffer. A DLTensor
// does not say how much memory there is, so elements are read only where wide
// arithmetic finds them in the buffer; the deleter runs once whatever comes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "rill/device/buffer.h"
#include "rill/tensors/dlpack/dlpack.h"
#include "rill/tensors/dlpack/dlpack_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

using Wide = __int128;

constexpr size_t kBytes = 256;

// The bytes that `t` reaches as an address range; as FromDLPack has to find.
struct Range {
  Wide low;
  Wide high;
};
Range RangeOf(const DLTensor& t) {
  const Wide item = t.dtype.bits / 8;
  Wide row_major = 1;
  Range range;
  range.low = Wide{reinterpret_cast<uintptr_t>(t.data)} + t.byte_offset;
  range.high = range.low + item;
  for (int d = t.ndim - 1; d >= 0; --d) {
    const Wide stride = t.strides == nullptr ? row_major : Wide{t.strides[d]};
    const Wide reach = (Wide{t.shape[d]} - 1) * stride * item;
    (reach < 0 ? range.low : range.high) += reach;
    row_major *= t.shape[d];
  }
  return range;
}

void CheckRoundTrip(const Tensor& tensor) {
  const auto managed = ToDLPackVersioned(tensor);
  RILL_FUZZ_CHECK(managed.ok());
  RILL_FUZZ_CHECK((*managed)->dl_tensor.byte_offset == 0);
  const auto again = FromDLPack(*managed);
  RILL_FUZZ_CHECK(again.ok());
  RILL_FUZZ_CHECK(again->shape() == tensor.shape());
  RILL_FUZZ_CHECK(again->dtype() == tensor.dtype());
  RILL_FUZZ_CHECK(again->device() == tensor.device());
  RILL_FUZZ_CHECK(again->is_writable() == tensor.is_writable());
  for (int d = 0; d < tensor.rank() && tensor.num_elements() > 0; ++d) {
    RILL_FUZZ_CHECK(tensor.shape()[d] == 1 ||
                    again->strides_bytes()[d] == tensor.strides_bytes()[d]);
  }
}

void CheckImported(const Tensor& tensor, const DLTensor& from,
                   const std::byte* memory) {
  RILL_FUZZ_CHECK(tensor.rank() == from.ndim);
  CheckRoundTrip(tensor);
  if (tensor.num_elements() == 0) return;
  const Range range = RangeOf(from);
  const Wide first = reinterpret_cast<uintptr_t>(memory);
  // The view is of just the bytes that the fields name.
  const Wide data = reinterpret_cast<uintptr_t>(tensor.buffer()->data());
  RILL_FUZZ_CHECK(data == range.low);
  RILL_FUZZ_CHECK(data + tensor.buffer()->size_bytes() == range.high);
  if (!tensor.is_host() || range.low < first || range.high > first + kBytes ||
      tensor.num_elements() > 4096) {
    return;
  }
  const auto same = tensor.BitEquals(*tensor.Clone());
  RILL_FUZZ_CHECK(same.ok() && *same);
}

template <typename Managed>
void TryImport(FuzzInput* input) {
  const auto memory = std::make_unique<std::byte[]>(kBytes);
  std::vector<int64_t> shape(input->TakeSmall(0, 9));
  std::vector<int64_t> strides(shape.size());
  int deleted = 0;
  Managed managed = {};
  managed.manager_ctx = &deleted;
  managed.deleter = [](Managed* self) {
    ++*static_cast<int*>(self->manager_ctx);
  };
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    managed.version.major =
        input->TakeSmall(0, 7) == 7 ? input->Take<uint8_t>() : 1;
    managed.flags = input->Take<uint8_t>();
  }
  DLTensor& t = managed.dl_tensor;
  const uint8_t nulls = input->Take<uint8_t>();
  t.data = (nulls & 7) == 7 ? nullptr : memory.get();
  t.shape = (nulls & 56) == 56 ? nullptr : shape.data();
  t.strides = (nulls & 192) == 192 ? nullptr : strides.data();
  const int64_t kind = input->TakeSmall(0, 7);
  t.device.device_type =
      static_cast<DLDeviceType>(kind < 5   ? 1
                                : kind < 7 ? kind - 3
                                           : input->Take<int32_t>());
  t.device.device_id = static_cast<int32_t>(input->TakeSmall(-1, 3));
  t.ndim = static_cast<int32_t>(shape.size());
  if (input->TakeSmall(0, 31) == 31) t.ndim = -t.ndim;
  t.dtype.code = input->Take<uint8_t>() % 32;
  t.dtype.bits = input->Take<uint8_t>();
  t.dtype.lanes = input->TakeSmall(0, 15) == 15 ? input->Take<uint16_t>() : 1;
  t.byte_offset = static_cast<uint64_t>(input->TakeHostile());
  for (int64_t& size : shape) size = input->TakeHostile();
  for (int64_t& stride : strides) stride = input->TakeHostile();
  {
    const auto tensor = FromDLPack(&managed);
    RILL_FUZZ_CHECK(deleted == (tensor.ok() ? 0 : 1));
    if (tensor.ok()) CheckImported(*tensor, t, memory.get());
  }
  RILL_FUZZ_CHECK(deleted == 1);
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::FuzzInput input(data, size);
  if (input.TakeSmall(0, 1) == 0) {
    rill::TryImport<rill::DLManagedTensor>(&input);
  } else {
    rill::TryImport<rill::DLManagedTensorVersioned>(&input);
  }
  return 0;
}
