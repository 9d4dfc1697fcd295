// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DENSE_STORAGE_H_
#define RILL_STORAGE_DENSE_STORAGE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/spec.h"

namespace rill {

// Storage in memory: RAM, pinned RAM, or a device's.
class DenseStorage {
 public:
  struct Options {
    int64_t capacity = 0;  // Slots in all; > 0, a multiple of `lanes`.
    int64_t lanes = 1;     // >= 1.
    StorageLayout layout = StorageLayout::kAuto;
    StorageOrder order = StorageOrder::kLaneMajor;
    Device device = Device::Cpu();
    MemoryKind memory_kind = MemoryKind::kPageable;  // kDevice off the CPU.
    TensorDictSpec spec = {};  // Empty: taken from the first write.
    EventKeys event_keys = {};
  };

  // Memory is taken at once where the spec is given, else at the first write.
  // INVALID_ARGUMENT names the option; RESOURCE_EXHAUSTED asked and free bytes.
  static absl::StatusOr<std::unique_ptr<Storage>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_STORAGE_DENSE_STORAGE_H_
