// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_TESTING_DEVICE_BATCHES_H_
#define RILL_REPLAY_TESTING_DEVICE_BATCHES_H_

#include "absl/status/status.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Batches for tests of where samples lie.

// Every leaf is on the device. A GoogleTest failure names each that is not.
void ExpectAllOn(const Device& device, const TensorDict& batch);

// What a user's transform does to a batch: replaces it by a new dictionary of
// copies that says nothing of a device. Errors of the copies.
absl::Status BuildAnew(TensorDict* batch);

}  // namespace rill

#endif  // RILL_REPLAY_TESTING_DEVICE_BATCHES_H_
