// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_PARTS_PART_FIT_H_
#define RILL_REPLAY_PARTS_PART_FIT_H_

#include "absl/status/status.h"
#include "rill/replay/writers/writer_traits.h"
#include "rill/samplers/sampler_traits.h"

namespace rill::replay_internal {

// Checks that the parts of a replay buffer fit each other. The sampler's traits
// hold those of its unit:
//
//   part      where               wants
//   sampler   needs_order         a writer that keeps_order: a row in another's
//                                 place tears trajectories
//   unit      its layout has      arithmetic, which takes the rows beside
//             context
//   unit      it has arithmetic   a layout that passes
//                                 UnitTransform::CheckLayout
//
// INVALID_ARGUMENT of ReplayBuffer::Create names both parts. A part checks by
// itself what it asks of the storage: when it is attached (Writer::Attach), or
// when the specs of rows are known (BatchTransform::ForwardSpec).
// Thread-safety: thread-safe.
absl::Status CheckFit(const SamplerTraits& sampler, const WriterTraits& writer);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_PARTS_PART_FIT_H_
