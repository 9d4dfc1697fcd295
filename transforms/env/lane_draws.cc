// SPDX-License-Identifier: Apache-2.0
// The generator is counter-based: a number is a function of the seeds, the
// stream (which transform), the batch (a lane and the number of its draw) and
// the draw. So lanes do not depend on one another, and a state is two tensors.
#include "rill/transforms/env/lane_draws.h"

#include "absl/strings/str_cat.h"
#include "rill/base/mixed_seed.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::transforms_internal {
namespace {

absl::StatusOr<TensorDict> StateOf(uint64_t seed, int64_t lanes) {
  TensorDict state;
  RILL_ASSIGN_OR_RETURN(
      Tensor number, Tensor::From<int64_t>({static_cast<int64_t>(seed)}, {1}));
  RILL_RETURN_IF_ERROR(state.Set(kDrawsSeedKey, number));
  RILL_ASSIGN_OR_RETURN(Tensor draws, Tensor::Zeros(DType::kInt64, {lanes, 1}));
  RILL_RETURN_IF_ERROR(state.Set(kDrawsKey, draws));
  return state;
}

}  // namespace

absl::StatusOr<TensorDict> LaneDraws::InitialState(int64_t lanes) {
  return StateOf(/*seed=*/0, lanes);
}

absl::Status LaneDraws::Restart(uint64_t seed, TensorDict* state) {
  RILL_ASSIGN_OR_RETURN(const Tensor draws, state->Get(kDrawsKey));
  RILL_ASSIGN_OR_RETURN(const TensorDict fresh,
                        StateOf(seed, draws.num_elements()));
  RILL_RETURN_IF_ERROR(state->Set(kDrawsSeedKey, *fresh.Find(kDrawsSeedKey)));
  return state->Set(kDrawsKey, *fresh.Find(kDrawsKey));
}

absl::StatusOr<LaneDraws> LaneDraws::Create(absl::string_view caller,
                                            DrawStream stream, uint64_t seed,
                                            int64_t lanes, SpareTensors* spare,
                                            TensorDict* state) {
  // A state that was made for other lanes, or loaded, is refused before it is
  // indexed by lane.
  const Tensor* const env_seed = state->Find(kDrawsSeedKey);
  const Tensor* const found = state->Find(kDrawsKey);
  if (env_seed == nullptr || found == nullptr ||
      found->num_elements() != lanes) {
    return FailedPrecondition(
        caller, ": state: got ",
        found == nullptr ? "none"
                         : absl::StrCat("draws of ", found->num_elements()),
        ", want that of InitialState for ", lanes, " lanes");
  }
  RILL_ASSIGN_OR_RETURN(const int64_t of_env, env_seed->Item<int64_t>());
  // Counts are changed in a copy: the caller keeps the old state on an error.
  // The copy is in the state already, so Next counts in the state.
  RILL_ASSIGN_OR_RETURN(const Tensor draws, spare->Copy(*found));
  RILL_ASSIGN_OR_RETURN(const absl::Span<int64_t> counts,
                        draws.Flat<int64_t>());
  RILL_RETURN_IF_ERROR(state->Set(kDrawsKey, draws));
  return LaneDraws(Rng(MixedSeed(seed, static_cast<uint64_t>(of_env)),
                       RngStream::kTransform, static_cast<uint16_t>(stream)),
                   counts);
}

uint64_t LaneDraws::Next(size_t lane) {
  // 24 bits for the lane and 40 for its draws: no two lanes share a number.
  return (static_cast<uint64_t>(lane) << 40) +
         static_cast<uint64_t>(counts_[lane]++);
}

}  // namespace rill::transforms_internal
