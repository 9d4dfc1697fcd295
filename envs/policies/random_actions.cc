// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/random_actions.h"

#include <cstddef>

#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/legal_choices.h"
#include "rill/specs/spec.h"

namespace rill {

const LegalActions* FindLegalActions(const EnvSpec& env,
                                     absl::string_view action) {
  for (const LegalActions& legal : env.legal_actions) {
    if (legal.action == action) return &legal;
  }
  return nullptr;
}

absl::StatusOr<Tensor> OnHost(const TensorDict& dict, absl::string_view key,
                              const Stream* stream) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, dict.Get(key));
  if (leaf.is_host()) return leaf.Contiguous();
  if (stream != nullptr) {
    RILL_RETURN_IF_ERROR(stream->Synchronize());
  }
  RILL_ASSIGN_OR_RETURN(const Tensor copy, leaf.To(Device::Cpu()));
  return copy.Contiguous();
}

absl::Status WriteRandomActions(const EnvSpec& env,
                                const RandomActionDraws& draws, int64_t number,
                                const TensorDict& root, const TensorDict& step,
                                const Stream* stream) {
  for (size_t i = 0; i < env.action.leaves().size(); ++i) {
    const TensorDictSpec::Leaf& leaf = env.action.leaves()[i];
    RILL_ASSIGN_OR_RETURN(Tensor to, step.Get(leaf.key));
    const Rng rng(draws.seed, draws.stream,
                  static_cast<uint16_t>(draws.first_substream + i));
    const auto batch = static_cast<uint64_t>(number);
    // Filled in place where it can be, and else another, which is copied.
    Tensor drawn = to;
    const LegalActions* const legal = FindLegalActions(env, leaf.key);
    if (legal == nullptr) {
      RILL_RETURN_IF_ERROR(
          leaf.spec.RandomInto(step.batch_shape(), rng, batch, &drawn));
    } else {
      RILL_ASSIGN_OR_RETURN(const Tensor mask,
                            OnHost(root, legal->mask, stream));
      if (!to.is_host() || !to.is_contiguous()) {
        RILL_ASSIGN_OR_RETURN(drawn, leaf.spec.Zero(step.batch_shape()));
      }
      const LegalChoices choices = {.key = leaf.key,
                                    .mask_key = legal->mask,
                                    .spec = leaf.spec,
                                    .mask = mask};
      RILL_RETURN_IF_ERROR(choices.Random("random actions", rng, batch, drawn));
    }
    if (drawn.raw_data() == to.raw_data()) continue;
    absl::Status copied;
    if (stream == nullptr || to.is_host()) {
      copied = to.CopyFrom(drawn);
    } else {
      copied = to.CopyFromAsync(drawn, *stream);
      copied.Update(stream->Synchronize());
    }
    RILL_RETURN_IF_ERROR(copied) << "in action \"" << leaf.key << "\"";
  }
  return absl::OkStatus();
}

}  // namespace rill
