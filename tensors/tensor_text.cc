// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/element.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/tensor_layout.h"

namespace rill {
namespace {

// More elements than this are shortened to the first and last ones.
constexpr int64_t kMaxShown = 16;
constexpr int64_t kEnds = 6;

// The elements in row-major order; the first and last of many.
std::string ValuesText(const Tensor& tensor) {
  std::string text;
  int64_t i = 0;
  const int64_t count = tensor.num_elements();
  const int64_t item = DTypeSize(tensor.dtype());
  const auto add = [&](const std::byte* at) {
    if (count > kMaxShown && i == kEnds) absl::StrAppend(&text, ", ...");
    if (count <= kMaxShown || i < kEnds || i >= count - kEnds) {
      absl::StrAppend(
          &text, i == 0 ? "" : ", ",
          tensor_internal::DispatchDType(tensor.dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            return tensor_internal::ElementText(
                tensor_internal::LoadElement<T>(at));
          }));
    }
    ++i;
  };
  tensor_internal::ForEachRun(
      tensor.shape(), tensor.strides_bytes(), tensor.strides_bytes(), item,
      [&](int64_t offset, int64_t, int64_t bytes) {
        for (int64_t at = 0; at < bytes; at += item) {
          add(tensor.raw_data() + offset + at);
        }
      });
  return text;
}

}  // namespace

std::string Tensor::DebugString() const {
  const std::string head =
      absl::StrCat(DTypeName(dtype_), shape_.ToString(), " ",
                   is_pinned() ? "pinned" : device().ToString());
  const absl::StatusOr<Tensor> host = To(Device::Cpu());
  if (!host.ok()) {
    return absl::StrCat(head, " {", host.status().message(), "}");
  }
  return absl::StrCat(head, " {", ValuesText(*host), "}");
}

std::ostream& operator<<(std::ostream& os, const Tensor& tensor) {
  return os << tensor.DebugString();
}

}  // namespace rill
