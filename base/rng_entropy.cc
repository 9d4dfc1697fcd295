// SPDX-License-Identifier: Apache-2.0
#include "rill/base/rng_entropy.h"

#include <unistd.h>

#include <cerrno>

namespace rill {

absl::StatusOr<std::array<uint8_t, 16>> RandomName() {
  std::array<uint8_t, 16> name;
  if (getentropy(name.data(), name.size()) == 0) return name;
  return absl::ErrnoToStatus(
      errno, "RandomName: got no random bytes from the system, want 16");
}

}  // namespace rill
