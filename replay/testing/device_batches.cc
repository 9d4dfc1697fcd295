// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/testing/device_batches.h"

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"

namespace rill {

void ExpectAllOn(const Device& device, const TensorDict& batch) {
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), device) << key;
  });
}

absl::Status BuildAnew(TensorDict* batch) {
  RILL_ASSIGN_OR_RETURN(const TensorDict clone, batch->Clone());
  TensorDict anew(batch->batch_shape());
  for (const std::string& key : clone.LeafKeys()) {
    RILL_RETURN_IF_ERROR(anew.Set(key, *clone.Find(key)));
  }
  anew.ClearDevice();
  *batch = std::move(anew);
  return absl::OkStatus();
}

}  // namespace rill
