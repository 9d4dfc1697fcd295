// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_DEVICE_H_
#define RILL_DEVICE_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill {

// Names a place for bytes: "cpu", "cuda:0", or "fake:0" (a device made of host
// memory, for tests; see device/testing:fake_backend). A plain value: making
// one touches no driver.
// Thread-safety: immutable.
struct Device {
  enum class Type : uint8_t { kCpu, kCuda, kFake };

  Type type = Type::kCpu;
  int index = 0;  // >= 0; always 0 for the CPU.

  static Device Cpu() { return {}; }
  static Device Cuda(int index = 0) { return {Type::kCuda, index}; }
  static Device Fake(int index = 0) { return {Type::kFake, index}; }

  // INVALID_ARGUMENT names the text and the forms that are allowed.
  static absl::StatusOr<Device> Parse(absl::string_view text);

  bool is_cpu() const { return type == Type::kCpu; }
  std::string ToString() const;

  friend bool operator==(const Device&, const Device&) = default;
};

// The kind of memory of a buffer. The CPU can read and write all but kDevice.
enum class MemoryKind : uint8_t { kPageable, kPinned, kMappedFile, kDevice };

absl::string_view MemoryKindName(MemoryKind kind);

}  // namespace rill

#endif  // RILL_DEVICE_DEVICE_H_
