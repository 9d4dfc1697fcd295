// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_POLICY_H_
#define RILL_ENVS_POLICIES_POLICY_H_

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/mixed_seed.h"
#include "rill/device/stream.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The place of a call in a run: enough to draw from a counter-based stream
// without a generator of its own. A policy draws by (SeedOf its own seed, step,
// lane): so policies that one function makes draw other numbers in each worker.
struct ActContext {
  // Of the whole run before this step: of all lanes and of all workers, as far
  // as the caller knows. Annealing counts these.
  int64_t frames = 0;
  int64_t step = 0;  // Steps of the caller before this one.
  // False: a policy that explores acts as if it did not.
  bool explore = true;
  // For work on leaves on a device. Null: the leaves are in host memory.
  const Stream* stream = nullptr;
  // Another one for each collector's seed, each worker, and each start of a
  // worker. 0: the caller has none.
  uint64_t seed = 0;

  // `own`, with the caller's seed mixed in.
  uint64_t SeedOf(uint64_t own) const { return MixedSeed(own, seed); }
};

// Whether an output of this key is the log-probability of the action: the name
// behind a group's key is "log_prob", "action_log_prob" or "sample_log_prob".
// It is of the leaves of the action below the same key, at the root of all.
// Whoever puts another action in the place of a policy's changes it or refuses.
bool IsLogProbKey(absl::string_view key);

// Chooses actions. Rollout, evaluator and collectors call the same policies.
//
// Thread-safety: thread-compatible. A caller may alternate between several
// environments of one kind: what a lane remembers is in the leaves of its step.
// Device/Stream: leaves lie on one device, EnvSpec::device or where a caller
//   places the policy. Act reads and writes those on a device by work on
//   ActContext::stream, which it may leave enqueued there, or orders other
//   streams with it. The work that wrote the leaves before is on it too.
class Policy {
 public:
  virtual ~Policy() = default;

  // The leaves that Act writes beside the action: "log_prob", "value". A leaf
  // below next ("next/hidden") is recurrent state. The root has the same leaf:
  // its value after the step before, and zero where an episode begins.
  // IsLogProbKey says which of them are log-probabilities of the action.
  virtual const TensorDictSpec& output_spec() const;

  // Reads `root` [lanes] and writes action and outputs into the leaves of
  // `step`, in place. Returns the version of the weights that it used; every
  // frame carries it.
  virtual absl::StatusOr<int64_t> Act(const TensorDict& root,
                                      const ActContext& context,
                                      TensorDict* step) = 0;
};

// A policy from a function that fills the leaf "action":
//   Status(const TensorDict& root, Tensor* action), or with a context between.
//
// Example (PolicyTest.Example runs it):
//   FunctionPolicy left([](const TensorDict& /*root*/, Tensor* action) {
//     std::fill_n(action->data<int64_t>(), action->num_elements(), 0);
//     return absl::OkStatus();
//   });
class FunctionPolicy final : public Policy {
 public:
  using Function = std::function<absl::Status(
      const TensorDict& root, const ActContext& context, Tensor* action)>;

  template <typename F>
  requires std::is_invocable_r_v<absl::Status, F&, const TensorDict&,
                                 const ActContext&, Tensor*>
  explicit FunctionPolicy(F act, int64_t version = 0)
      : act_(std::move(act)), version_(version) {}
  template <typename F>
  requires std::is_invocable_r_v<absl::Status, F&, const TensorDict&, Tensor*>
  explicit FunctionPolicy(F act, int64_t version = 0)
      : act_([act = std::move(act)](const TensorDict& root, const ActContext&,
                                    Tensor* action) mutable {
          return act(root, action);
        }),
        version_(version) {}

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  Function act_;
  int64_t version_;
};

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_POLICY_H_
