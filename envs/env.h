// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_ENV_H_
#define RILL_ENVS_ENV_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/envs/env_spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Which episodes Reset begins.
struct ResetMask {
  // NOLINTNEXTLINE(google-explicit-constructor): a mask of lanes is one.
  ResetMask(absl::Span<const uint8_t> lane_mask) : lanes(lane_mask) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  ResetMask(const std::vector<uint8_t>& lane_mask) : lanes(lane_mask) {}
  ResetMask(absl::Span<const uint8_t> lane_mask,
            absl::Span<const uint8_t> group_mask)
      : lanes(lane_mask), groups(group_mask) {}

  // One entry a lane; not 0: the lane begins, with all of its groups.
  absl::Span<const uint8_t> lanes;
  // Empty, or [own_episodes, lanes] of the spec: the group begins in that lane.
  absl::Span<const uint8_t> groups = {};
};

// Several copies ("lanes") of one environment that step together.
//
// An Env owns the leaves of its step, on its device, and fills them in place:
// they stay the same tensors, so callers look them up once. A caller writes
// the action and reads the rest. `done` = terminated | truncated;
// `terminated`: the task has ended, its value is 0 from here on; `truncated`:
// the episode was only cut off. Rewards are finite.
//
// An Env never resets by itself: a step leaves the true final observation in
// `next`. Before the next step the caller copies what is below `next` to the
// root and resets the lanes that are done (envs/steps/step_driver.h does both).
//
// Thread-safety: thread-compatible.
// Device/Stream: when Reset and EndStep return, leaves on a device are complete
//   for work on the thread's current stream (device/current_stream.h), which is
//   the default stream without a StreamScope. Reset and BeginStep come behind
//   the default stream. So callers work on these leaves on the default stream;
//   with another one as the current one they let the default stream wait for it
//   before both.
// Implementations pass envs/env_checker.h.
class Env {
 public:
  virtual ~Env() = default;
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  const EnvSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  int64_t lanes() const { return spec_.lanes; }
  // The leaves of StepSpec(spec()); zero before the first reset.
  const TensorDict& step() const { return step_; }

  // Lane l draws from the stream (seed, l) from now on, beginning with its next
  // reset: equal seeds give equal episodes whatever the other lanes do.
  virtual absl::Status Seed(uint64_t seed) = 0;

  // Begins episodes: writes the rows of observation and flags (false) at the
  // root, of the lanes and groups of the mask; other rows stay.
  // INVALID_ARGUMENT where the mask does not fit.
  virtual absl::Status Reset(const ResetMask& mask) = 0;

  // Reads the action and begins the step; EndStep waits for it, and then the
  // leaves below `next` are written. Between the two the simulator may work
  // beside the caller, who touches neither the leaves nor the Env. An
  // environment without such work does all of it in BeginStep.
  //
  // BeginStep is all or nothing. INVALID_ARGUMENT names lane and value where an
  // action is outside its spec; FAILED_PRECONDITION names a lane that is done
  // or was never reset. A wrong action has precedence, whichever lanes the two
  // are of.
  //
  // A simulator that fails is another error, of either call, which names lanes
  // and reason. The others have stepped. Those that failed are done and
  // truncated in `next`, with the observation of the root and no reward, and a
  // reset begins them anew: a caller may go on.
  virtual absl::Status BeginStep() = 0;
  virtual absl::Status EndStep() { return absl::OkStatus(); }
  absl::Status Step() {
    const absl::Status begun = BeginStep();
    return begun.ok() ? EndStep() : begun;
  }

  // The whole state of all lanes, random streams included; the leaves of step()
  // are not part of it. UNIMPLEMENTED where a simulator cannot. Load refuses,
  // unchanged, what Save of an equal environment did not write.
  virtual absl::StatusOr<TensorDict> SaveState() const {
    return absl::UnimplementedError(name() + ": cannot save its state");
  }
  virtual absl::Status LoadState(const TensorDict& /*state*/) {
    return absl::UnimplementedError(name() + ": cannot load a state");
  }

  // Off: what learns from steps, as statistics of transforms do, is applied and
  // stays as it is. Evaluations switch it off.
  bool learns() const { return learns_; }
  void SetLearning(bool learns) {
    learns_ = learns;
    OnSetLearning();
  }

 protected:
  // learns() has been set: an Env that steps others sets theirs.
  virtual void OnSetLearning() {}

  // `step` is MakeStep(spec), or leaves of that layout that the simulator has.
  Env(EnvSpec spec, TensorDict step)
      : spec_(std::move(spec)), step_(std::move(step)) {}

 private:
  const EnvSpec spec_;
  const TensorDict step_;
  bool learns_ = true;
};

}  // namespace rill

#endif  // RILL_ENVS_ENV_H_
