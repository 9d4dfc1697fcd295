// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/remove_empty_specs.h"

namespace rill {
absl::StatusOr<std::unique_ptr<RemoveEmptySpecs>> RemoveEmptySpecs::Create() {
  return std::make_unique<RemoveEmptySpecs>();
}

absl::Status RemoveEmptySpecs::Forward(TensorDict* batch,
                                       TensorDict* /*state*/) const {
  return batch->DeleteIf([](absl::string_view, const TensorDict* dict) {
    return dict != nullptr && dict->empty();
  });
}

}  // namespace rill
