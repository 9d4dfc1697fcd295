// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/lost_devices.h"

#include "absl/strings/str_cat.h"

namespace rill {

void LostDevices::Add(int index, const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  errors_.try_emplace(
      index, error.code(),
      absl::StrCat("this process has lost cuda:", index, ": ", error.message(),
                   "; no call for it can succeed, so start the process again"));
  is_any_lost_.store(true, std::memory_order_relaxed);
}

absl::Status LostDevices::Find(int index) const {
  absl::MutexLock lock(&mutex_);
  const auto found = errors_.find(index);
  return found == errors_.end() ? absl::OkStatus() : found->second;
}

}  // namespace rill
