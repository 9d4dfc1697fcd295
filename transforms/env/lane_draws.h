// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_LANE_DRAWS_H_
#define RILL_TRANSFORMS_ENV_LANE_DRAWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/memory/spare_tensors.h"

namespace rill::transforms_internal {

// Keeps the numbers of different transforms apart. Values are part of the
// reproducibility contract: never renumber, only add.
enum class DrawStream : uint16_t {
  kActionDiscretizer = 1,
  kDiscreteActionProjection = 2,
  kTensorDictPrimer = 3,
  kRandomTruncation = 4,
};

// The keys of a state.
inline constexpr absl::string_view kDrawsSeedKey = "seed";
inline constexpr absl::string_view kDrawsKey = "draws";

// Random numbers of a transform beside an environment. Draw i of a lane is a
// function of the transform, its seed, the environment's seed, the lane and i,
// whatever other lanes do. A state holds what is left to remember: "seed",
// int64 [1], the environment's, and "draws", int64 [lanes, 1], how many there
// were.
//
// Thread-safety: thread-compatible; the state is the caller's.
class LaneDraws {
 public:
  static absl::StatusOr<TensorDict> InitialState(int64_t lanes);
  // The environment has this seed, and no lane has drawn.
  static absl::Status Restart(uint64_t seed, TensorDict* state);

  // Sets another "draws" in the state, one of `spare`, which Next counts in.
  // FAILED_PRECONDITION, starting with `caller`, where the state is not one of
  // so many lanes.
  static absl::StatusOr<LaneDraws> Create(absl::string_view caller,
                                          DrawStream stream, uint64_t seed,
                                          int64_t lanes, SpareTensors* spare,
                                          TensorDict* state);

  const Rng& rng() const { return rng_; }
  int64_t count(size_t lane) const { return counts_[lane]; }
  // The batch of rng() that is the lane's next draw.
  uint64_t Next(size_t lane);

 private:
  LaneDraws(const Rng& rng, absl::Span<int64_t> counts)
      : rng_(rng), counts_(counts) {}

  Rng rng_;
  absl::Span<int64_t> counts_;  // Of the state's tensor.
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ENV_LANE_DRAWS_H_
