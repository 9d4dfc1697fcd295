// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sample_origins.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::replay_internal {

absl::StatusOr<Tensor> NumbersOf(absl::string_view caller,
                                 const TensorDict& batch,
                                 absl::string_view key) {
  absl::StatusOr<Tensor> leaf = batch.Get(key);
  RILL_RETURN_IF_ERROR(leaf.status()) << caller << ": want a sample's leaves";
  if (leaf->dtype() != DType::kInt64) {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": \"", key, "\": got ", DTypeName(leaf->dtype()),
                     ", want int64"));
  }
  RILL_ASSIGN_OR_RETURN(Tensor on_host, leaf->To(Device::Cpu()));
  return on_host.Contiguous();
}

absl::StatusOr<std::vector<Draw>> DrawsOf(absl::string_view caller,
                                          const TensorDict& sample) {
  RILL_ASSIGN_OR_RETURN(const Tensor index,
                        NumbersOf(caller, sample, kIndexKey));
  RILL_ASSIGN_OR_RETURN(const Tensor generations,
                        NumbersOf(caller, sample, kGenerationKey));
  if (index.num_elements() != generations.num_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": \"", kGenerationKey, "\": got ",
                     generations.shape().ToString(), ", want the shape of \"",
                     kIndexKey, "\", ", index.shape().ToString()));
  }
  std::vector<Draw> draws(static_cast<size_t>(index.num_elements()));
  for (size_t i = 0; i < draws.size(); ++i) {
    draws[i].slot = index.data<int64_t>()[i];
    draws[i].generation = generations.data<int64_t>()[i];
  }
  return draws;
}

}  // namespace rill::replay_internal
