// SPDX-License-Identifier: Apache-2.0
#include "rill/device/device.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

absl::string_view TypeName(Device::Type type) {
  switch (type) {
    case Device::Type::kCpu:
      return "cpu";
    case Device::Type::kCuda:
      return "cuda";
    case Device::Type::kFake:
      return "fake";
  }
  return "unknown";
}

absl::Status BadName(absl::string_view text) {
  return InvalidArgument(
      "Device::Parse: text: got \"", text,
      "\", want \"cpu\", \"cuda\", \"cuda:N\", \"fake\" or \"fake:N\"");
}

}  // namespace

absl::StatusOr<Device> Device::Parse(absl::string_view text) {
  if (text == "cpu") return Cpu();
  const size_t colon = text.find(':');
  const absl::string_view name = text.substr(0, colon);
  int index = 0;
  if (colon != absl::string_view::npos) {
    const absl::string_view digits = text.substr(colon + 1);
    // SimpleAtoi alone would take signs and blanks.
    if (digits.empty() || !absl::ascii_isdigit(digits.front()) ||
        !absl::ascii_isdigit(digits.back()) ||
        !absl::SimpleAtoi(digits, &index)) {
      return BadName(text);
    }
  }
  if (name == "cuda") return Cuda(index);
  if (name == "fake") return Fake(index);
  return BadName(text);
}

std::string Device::ToString() const {
  if (type == Type::kCpu) return "cpu";
  return absl::StrCat(TypeName(type), ":", index);
}

absl::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kPageable:
      return "pageable";
    case MemoryKind::kPinned:
      return "pinned";
    case MemoryKind::kMappedFile:
      return "mapped file";
    case MemoryKind::kDevice:
      return "device";
  }
  return "unknown";
}

}  // namespace rill
