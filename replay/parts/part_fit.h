// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_PARTS_PART_FIT_H_
#define RILL_REPLAY_PARTS_PART_FIT_H_

#include "absl/status/status.h"
#include "rill/replay/writers/writer_traits.h"
#include "rill/samplers/sampler_traits.h"
#include "rill/specs/spec.h"
#include "rill/storage/event_keys.h"

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

// Checks that a sampler can tell the trajectories of such rows apart, of a
// storage that reports `keys`:
//
//   part      where               wants
//   sampler   needs_order         an end flag or an id, or keys that say that
//                                 lanes are endless
//   unit      its arithmetic      the group's ends among those of the keys
//             takes a group's
//             leaf of other rows,
//             and the group has
//             flags of its own
//
// INVALID_ARGUMENT of ReplayBuffer says what to write, or which keys to name.
// Thread-safety: thread-safe.
absl::Status CheckEnds(const SamplerTraits& sampler, const EventKeys& keys,
                       const TensorDictSpec& rows);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_PARTS_PART_FIT_H_
