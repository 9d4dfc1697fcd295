// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/part_fit.h"

#include <algorithm>
#include <string>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/transforms/rows/group_ends.h"
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

absl::Status CheckGroups(const SamplerTraits& sampler, const EventKeys& keys,
                         const TensorDictSpec& rows) {
  // Ids alone were asked for.
  if (sampler.arithmetic == nullptr || keys.ends.empty()) {
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(const UnitTransform::Reads reads,
                        sampler.arithmetic->PlanReads(rows));
  const std::vector<std::string> told = keys.EndsOf(rows);
  for (const UnitTransform::Reads::List& list : reads.context) {
    for (const std::string& key : list.apart) {
      for (const std::string& end :
           transforms_internal::GroupEndsOf(key, rows)) {
        if (std::find(told.begin(), told.end(), end) != told.end()) continue;
        return InvalidArgument(
            "ReplayBuffer: rows: got \"", key, "\" of a group that ends by \"",
            end, "\", with ", sampler.name,
            " that takes it of several rows, want that among the ends of the "
            "storage; name it in EventKeys::ends, so that no item goes over an "
            "end of the group");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEnds(const SamplerTraits& sampler, const EventKeys& keys,
                       const TensorDictSpec& rows) {
  if (!sampler.needs_order) return absl::OkStatus();
  if (!keys.is_endless() && !keys.TellTrajectories(rows)) {
    return InvalidArgument("ReplayBuffer: ", sampler.name, ": ",
                           keys.WantText());
  }
  return CheckGroups(sampler, keys, rows);
}

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
