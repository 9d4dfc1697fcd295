// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/exploration.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/standard_normal.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

// Draws are numbered by step and element, not taken from a stream in order. So
// no wrapper has a random state to save, and a resumed run draws what it would
// have drawn. The choice of EGreedy and each leaf have substreams of their own.

namespace rill {
namespace {

// Substreams of a seed: leaf i draws from kLeaves + i.
constexpr uint16_t kChoice = 0;
constexpr uint16_t kLeaves = 1;

absl::Status Refuse(absl::string_view caller, absl::string_view option,
                    double got, absl::string_view want) {
  return InvalidArgument(caller, ": ", option, ": got ", got, ", want ", want);
}

absl::Status CheckWrapped(absl::string_view caller, const Policy* policy,
                          const TensorDictSpec& action,
                          int64_t annealing_num_steps) {
  if (policy == nullptr) {
    return InvalidArgument(caller, ": policy: got null, want a policy");
  }
  if (action.leaves().empty()) {
    return InvalidArgument(caller,
                           ": action: got no leaf, want EnvSpec::action");
  }
  for (const TensorDictSpec::Leaf& leaf : policy->output_spec().leaves()) {
    if (!IsLogProbKey(leaf.key)) continue;
    return InvalidArgument(caller, ": policy: got one that writes \"", leaf.key,
                           "\", want none: the log-probability of the action "
                           "that is taken in place of its own is not known");
  }
  if (annealing_num_steps >= 1) return absl::OkStatus();
  return Refuse(caller, "annealing_num_steps",
                static_cast<double>(annealing_num_steps), "> 0");
}

absl::Status CheckNotNegative(absl::string_view caller,
                              absl::string_view option, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return Refuse(caller, option, value, "a finite number >= 0");
}

absl::Status CheckHost(absl::string_view caller, absl::string_view key,
                       const Tensor& action) {
  if (action.is_host()) return absl::OkStatus();
  return InvalidArgument(
      caller, ": leaf \"", key, "\": got one on ", action.device().ToString(),
      ", want host memory; explore in a policy that acts on the device");
}

// From `init` at frame 0 to `end` at frame `frames`.
struct Annealed {
  double init = 0;
  double end = 0;
  int64_t frames = 1;

  double At(int64_t frame) const {
    const double way =
        // Behind the last frame the value stays.
        std::min(1.0, static_cast<double>(frame) / static_cast<double>(frames));
    return init + (end - init) * way;
  }
};

class RandomPolicy final : public Policy {
 public:
  RandomPolicy(EnvSpec env, uint64_t seed)
      : env_(std::move(env)), seed_(seed) {}

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    RILL_RETURN_IF_ERROR(WriteRandomActions(env_,
                                            {.seed = context.SeedOf(seed_),
                                             .stream = RngStream::kPolicy,
                                             .first_substream = kLeaves},
                                            context.step, root, *step,
                                            context.stream));
    return 0;
  }

 private:
  const EnvSpec env_;
  const uint64_t seed_;
};

class EGreedy final : public Policy {
 public:
  EGreedy(Policy* policy, EnvSpec env, const EGreedyOptions& options)
      : policy_(*policy),
        action_(env.action),
        random_(std::move(env), options.seed),
        epsilon_{options.eps_init, options.eps_end,
                 options.annealing_num_steps},
        seed_(options.seed) {}

  const TensorDictSpec& output_spec() const override {
    return policy_.output_spec();
  }

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const int64_t version,
                          policy_.Act(root, context, step));
    if (!context.explore) return version;
    // Made once for environments of one size.
    if (!(drawn_.batch_shape() == step->batch_shape()) || drawn_.empty()) {
      RILL_ASSIGN_OR_RETURN(drawn_, action_.Zero(step->batch_shape()));
    }
    // Drawn for all lanes, also those that keep their action. So a draw is a
    // function of its lane and step, whatever the others do.
    RILL_RETURN_IF_ERROR(random_.Act(root, context, &drawn_).status());
    const double epsilon = epsilon_.At(context.frames);
    const Rng choice(context.SeedOf(seed_), RngStream::kPolicy, kChoice);
    const int64_t lanes = step->batch_shape().num_elements();
    for (const TensorDictSpec::Leaf& leaf : action_.leaves()) {
      RILL_ASSIGN_OR_RETURN(const Tensor action, step->Get(leaf.key));
      RILL_RETURN_IF_ERROR(CheckHost("EGreedy", leaf.key, action));
      const Tensor& drawn = *drawn_.Find(leaf.key);
      if (action.dtype() != drawn.dtype() ||
          !(action.shape() == drawn.shape()) || !action.is_contiguous()) {
        return InvalidArgument(
            "EGreedy: leaf \"", leaf.key, "\": got ", DTypeName(action.dtype()),
            action.shape().ToString(), ", want contiguous ",
            DTypeName(drawn.dtype()), drawn.shape().ToString());
      }
      const int64_t width = drawn.size_bytes() / std::max<int64_t>(lanes, 1);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        // The same draw for every leaf: a lane's action is random as a whole.
        const double draw = choice.UniformDouble(
            static_cast<uint64_t>(context.step), static_cast<uint32_t>(lane));
        if (draw >= epsilon) continue;
        std::memcpy(action.raw_data() + lane * width,
                    drawn.raw_data() + lane * width,
                    static_cast<size_t>(width));
      }
    }
    return version;
  }

 private:
  Policy& policy_;
  const TensorDictSpec action_;
  RandomPolicy random_;
  const Annealed epsilon_;
  const uint64_t seed_;
  TensorDict drawn_;
};

// Adds noise to float32 and float64 leaves and clips them.
class NoisePolicy final : public Policy {
 public:
  // Where the noise of a leaf is remembered.
  struct NoiseKeys {
    std::string root;
    std::string next;
  };
  // The noise of an element, from a standard normal and what the element's
  // noise was in the step before.
  using Noise = std::function<double(double normal, double before)>;

  static absl::StatusOr<std::unique_ptr<Policy>> Create(
      absl::string_view caller, Policy* policy, const TensorDictSpec& action,
      const Annealed& scale, uint64_t seed, bool is_recurrent, Noise noise) {
    auto result = std::make_unique<NoisePolicy>(policy, action, scale, seed,
                                                std::move(noise));
    // The wrapped policy's, and below next the noise, which the driver carries
    // to the root.
    result->outputs_ = policy->output_spec();
    for (const TensorDictSpec::Leaf& leaf : action.leaves()) {
      if (leaf.spec.dtype != DType::kFloat32 &&
          leaf.spec.dtype != DType::kFloat64) {
        return InvalidArgument(caller, ": action \"", leaf.key, "\": got ",
                               leaf.spec.ToString(),
                               ", want float32 or float64; use MakeEGreedy");
      }
      if (!is_recurrent) continue;
      const std::string key = absl::StrCat(leaf.key, "_noise");
      const std::string next = absl::StrCat("next/", key);
      RILL_RETURN_IF_ERROR(result->outputs_.Set(
          next, LeafSpec::Unbounded(DType::kFloat64, leaf.spec.shape)));
      result->recurrent_.push_back({key, next});
    }
    return result;
  }
  NoisePolicy(Policy* policy, const TensorDictSpec& action,
              const Annealed& scale, uint64_t seed, Noise noise)
      : policy_(*policy),
        action_(action),
        scale_(scale),
        seed_(seed),
        noise_(std::move(noise)) {}

  const TensorDictSpec& output_spec() const override { return outputs_; }

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const int64_t version,
                          policy_.Act(root, context, step));
    for (size_t i = 0; i < action_.leaves().size(); ++i) {
      RILL_RETURN_IF_ERROR(action_.leaves()[i].spec.dtype == DType::kFloat32
                               ? AddNoise<float>(i, root, context, step)
                               : AddNoise<double>(i, root, context, step));
    }
    return version;
  }

 private:
  template <typename T>
  absl::Status AddNoise(size_t i, const TensorDict& root,
                        const ActContext& context, TensorDict* step) const {
    const TensorDictSpec::Leaf& leaf = action_.leaves()[i];
    RILL_ASSIGN_OR_RETURN(const Tensor leaf_action, step->Get(leaf.key));
    RILL_RETURN_IF_ERROR(CheckHost("NoisePolicy", leaf.key, leaf_action));
    RILL_ASSIGN_OR_RETURN(const auto action, leaf_action.Flat<T>());
    absl::Span<const double> before;
    absl::Span<double> after;
    if (!recurrent_.empty()) {
      RILL_ASSIGN_OR_RETURN(before, root.Flat<double>(recurrent_[i].root));
      RILL_ASSIGN_OR_RETURN(after, step->Flat<double>(recurrent_[i].next));
      if (before.size() != action.size() || after.size() != action.size()) {
        return InvalidArgument("leaf \"", recurrent_[i].root, "\": got ",
                               before.size(), " elements, want ",
                               action.size());
      }
      if (!context.explore) {
        // The noise stands still, so that the next step of exploration goes on
        // with it.
        std::copy(before.begin(), before.end(), after.begin());
      }
    }
    if (!context.explore) return absl::OkStatus();
    const Rng rng(context.SeedOf(seed_), RngStream::kPolicy,
                  static_cast<uint16_t>(kLeaves + i));
    const double scale = scale_.At(context.frames);
    const int64_t width = std::max<int64_t>(leaf.spec.shape.num_elements(), 1);
    const bool is_bounded = leaf.spec.domain == LeafSpec::Domain::kBounded;
    for (size_t k = 0; k < action.size(); ++k) {
      const double noise =
          noise_(StandardNormal(rng.Bits(static_cast<uint64_t>(context.step),
                                         static_cast<uint32_t>(k))),
                 before.empty() ? 0.0 : before[k]);
      if (!after.empty()) after[k] = noise;
      T value = static_cast<T>(action[k] + scale * noise);
      if (is_bounded) {
        const size_t at = k % static_cast<size_t>(width);
        // Bounds are one number, or one for each element of the leaf.
        const T low = leaf.spec.lows() == nullptr
                          ? static_cast<T>(leaf.spec.low)
                          : leaf.spec.lows()->template data<T>()[at];
        const T high = leaf.spec.highs() == nullptr
                           ? static_cast<T>(leaf.spec.high)
                           : leaf.spec.highs()->template data<T>()[at];
        value = std::clamp(value, low, high);
      }
      action[k] = value;
    }
    return absl::OkStatus();
  }

  Policy& policy_;
  const TensorDictSpec action_;
  const Annealed scale_;
  const uint64_t seed_;
  const Noise noise_;
  TensorDictSpec outputs_;
  std::vector<NoiseKeys> recurrent_;  // One a leaf, or none.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakeRandomPolicy(
    EnvSpec env, const RandomPolicyOptions& options) {
  if (env.action.leaves().empty()) {
    return InvalidArgument(
        "MakeRandomPolicy: action: got no leaf, want Env::spec with some");
  }
  return std::make_unique<RandomPolicy>(std::move(env), options.seed);
}

absl::StatusOr<std::unique_ptr<Policy>> MakeEGreedy(
    Policy* policy, EnvSpec env, const EGreedyOptions& options) {
  constexpr absl::string_view kCaller = "MakeEGreedy";
  RILL_RETURN_IF_ERROR(
      CheckWrapped(kCaller, policy, env.action, options.annealing_num_steps));
  for (const auto& [name, value] :
       {std::pair<const char*, double>{"eps_init", options.eps_init},
        {"eps_end", options.eps_end}}) {
    if (!(value >= 0 && value <= 1)) {
      return Refuse(kCaller, name, value, "[0, 1]");
    }
  }
  return std::make_unique<EGreedy>(policy, std::move(env), options);
}

absl::StatusOr<std::unique_ptr<Policy>> MakeAdditiveGaussian(
    Policy* policy, TensorDictSpec action,
    const AdditiveGaussianOptions& options) {
  constexpr absl::string_view kCaller = "MakeAdditiveGaussian";
  RILL_RETURN_IF_ERROR(
      CheckWrapped(kCaller, policy, action, options.annealing_num_steps));
  RILL_RETURN_IF_ERROR(
      CheckNotNegative(kCaller, "sigma_init", options.sigma_init));
  RILL_RETURN_IF_ERROR(
      CheckNotNegative(kCaller, "sigma_end", options.sigma_end));
  RILL_RETURN_IF_ERROR(CheckNotNegative(kCaller, "std", options.std));
  if (!std::isfinite(options.mean)) {
    return Refuse(kCaller, "mean", options.mean, "a finite number");
  }
  return NoisePolicy::Create(
      kCaller, policy, action,
      {options.sigma_init, options.sigma_end, options.annealing_num_steps},
      options.seed, /*is_recurrent=*/false,
      [mean = options.mean, std = options.std](double normal, double) {
        return mean + std * normal;
      });
}

absl::StatusOr<std::unique_ptr<Policy>> MakeOrnsteinUhlenbeck(
    Policy* policy, TensorDictSpec action,
    const OrnsteinUhlenbeckOptions& options) {
  constexpr absl::string_view kCaller = "MakeOrnsteinUhlenbeck";
  RILL_RETURN_IF_ERROR(
      CheckWrapped(kCaller, policy, action, options.annealing_num_steps));
  RILL_RETURN_IF_ERROR(CheckNotNegative(kCaller, "eps_init", options.eps_init));
  RILL_RETURN_IF_ERROR(CheckNotNegative(kCaller, "eps_end", options.eps_end));
  RILL_RETURN_IF_ERROR(CheckNotNegative(kCaller, "sigma", options.sigma));
  if (!(std::isfinite(options.dt) && options.dt > 0)) {
    return Refuse(kCaller, "dt", options.dt, "a finite number > 0");
  }
  for (const auto& [name, value] :
       {std::pair<const char*, double>{"theta", options.theta},
        {"mu", options.mu}}) {
    if (!std::isfinite(value)) {
      return Refuse(kCaller, name, value, "a finite number");
    }
  }
  return NoisePolicy::Create(
      kCaller, policy, action,
      {options.eps_init, options.eps_end, options.annealing_num_steps},
      options.seed, /*is_recurrent=*/true,
      [options](double normal, double before) {
        // Euler-Maruyama step of the process.
        return before + options.theta * (options.mu - before) * options.dt +
               options.sigma * std::sqrt(options.dt) * normal;
      });
}

}  // namespace rill
