// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/part_fit.h"

#include "rill/base/status_macros.h"
#include "rill/transforms/unit_transform.h"

namespace rill::replay_internal {
namespace {

absl::Status CheckUnit(const SamplerTraits& sampler) {
  if (sampler.arithmetic != nullptr) {
    RILL_RETURN_IF_ERROR(sampler.arithmetic->CheckLayout(sampler.layout))
        << "ReplayBuffer::Create: sampler: " << sampler.name;
    return absl::OkStatus();
  }
  if (sampler.layout.context.empty()) return absl::OkStatus();
  return InvalidArgument(
      "ReplayBuffer::Create: sampler: got ", sampler.name,
      ", whose unit plans ", sampler.layout.ContextString(),
      " beside its rows and has no arithmetic for them, want a unit with both "
      "halves (replay/sample_units.h)");
}

}  // namespace

absl::Status CheckFit(const SamplerTraits& sampler,
                      const WriterTraits& writer) {
  RILL_RETURN_IF_ERROR(CheckUnit(sampler));
  if (!sampler.needs_order || writer.keeps_order) return absl::OkStatus();
  return InvalidArgument(
      "ReplayBuffer::Create: writer: got ", writer.name, " with ", sampler.name,
      ", want one that appends, or a sampler of single rows: a row in "
      "another's place tears trajectories");
}

}  // namespace rill::replay_internal
