// SPDX-License-Identifier: Apache-2.0
// Environments in host memory: steps alone and into a batch, what a policy,
// TransformedEnv and wrappers add, and Gymnasium's in child processes.
// benchmarks/envs runs it; --help tells the flags.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/least_ns.h"
#include "rill/benchmarks/quick_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env.h"
#include "rill/envs/gymnasium/gymnasium_env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/steps/step_recorder.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/time_limit.h"
#include "rill/envs/wrappers/vector_env.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

constexpr absl::string_view kUsage =
    R"(Steps environments, and prints frames a second (the fastest of many slices) and ratios.
  --quick  fewer slices (seconds, not minutes)
)";

constexpr int64_t kTime = 64;  // Steps a batch, and rows of ready actions.

// Steps an environment with ready random actions, and resets lanes that are
// done.
class Loop {
 public:
  struct Options {
    bool into_batch = true;
    Policy* policy = nullptr;  // Must outlive the loop.
  };

  static absl::StatusOr<std::shared_ptr<Loop>> Create(
      absl::StatusOr<std::unique_ptr<Env>> made, const Options& options) {
    auto loop = std::make_shared<Loop>();
    RILL_ASSIGN_OR_RETURN(loop->env_, std::move(made));
    const Env& env = *loop->env_;
    loop->options_ = options;
    RILL_ASSIGN_OR_RETURN(loop->driver_,
                          StepDriver::Create(loop->env_.get(), options.policy));
    RILL_ASSIGN_OR_RETURN(const TensorDict batch,
                          loop->driver_.spec().Zero({env.lanes(), kTime}));
    RILL_ASSIGN_OR_RETURN(loop->recorder_,
                          StepRecorder::Create(loop->driver_.spec(), batch));
    RILL_RETURN_IF_ERROR(loop->recorder_.Bind(loop->driver_.step()));
    RILL_ASSIGN_OR_RETURN(loop->action_, env.step().Get("action"));
    for (int64_t t = 0; t < kTime; ++t) {
      // Drawn before: what random numbers cost is no part of a step.
      RILL_ASSIGN_OR_RETURN(const TensorDict drawn,
                            env.spec().action.Random({env.lanes()}, Rng(1), t));
      RILL_ASSIGN_OR_RETURN(loop->actions_.emplace_back(), drawn.Get("action"));
    }
    loop->mask_.resize(static_cast<size_t>(env.lanes()));
    RILL_RETURN_IF_ERROR(loop->driver_.ResetAll());
    return loop;
  }

  absl::Status Run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i, ++step_) {
      const int64_t t = step_ % kTime;
      std::copy_n(actions_[t].raw_data(), action_.size_bytes(),
                  action_.raw_data());
      if (options_.policy != nullptr) {
        RILL_RETURN_IF_ERROR(
            driver_.Act({.frames = step_ * env_->lanes(), .step = step_})
                .status());
      }
      RILL_RETURN_IF_ERROR(driver_.Step());
      if (options_.into_batch) {
        RILL_RETURN_IF_ERROR(recorder_.Record(t));
        RILL_RETURN_IF_ERROR(driver_.Advance());
      } else {
        RILL_RETURN_IF_ERROR(ResetDone());
      }
    }
    recorder_.Flush();
    return absl::OkStatus();
  }

  int64_t lanes() const { return env_->lanes(); }

 private:
  // Without Carry, which only readers of the root need: a simulator has its own
  // state.
  absl::Status ResetDone() {
    const auto done = driver_.done();
    std::copy(done.begin(), done.end(), mask_.begin());
    if (std::find(mask_.begin(), mask_.end(), 1) == mask_.end()) {
      return absl::OkStatus();
    }
    return driver_.Reset(mask_);
  }

  std::unique_ptr<Env> env_;
  Options options_;
  StepDriver driver_;
  StepRecorder recorder_;
  Tensor action_;
  std::vector<Tensor> actions_;
  std::vector<uint8_t> mask_;
  int64_t step_ = 0;
};

absl::StatusOr<FramesCase> MakeCase(std::string name,
                                    absl::StatusOr<std::unique_ptr<Env>> env,
                                    int64_t steps,
                                    const Loop::Options& options) {
  RILL_ASSIGN_OR_RETURN(const std::shared_ptr<Loop> loop,
                        Loop::Create(std::move(env), options));
  return FramesCase{.name = std::move(name),
                    .frames = steps * loop->lanes(),
                    .run = [loop, steps] { return loop->Run(steps); }};
}

absl::Status AddClassic(const std::string& name, bool into_batch,
                        absl::StatusOr<std::unique_ptr<Env>> env,
                        std::vector<FramesCase>* cases) {
  // Longer than an episode of most tasks, so that resets are part of it.
  const int64_t steps = !env.ok() || (*env)->lanes() > 1 ? 1024 : 16 * 1024;
  RILL_ASSIGN_OR_RETURN(
      cases->emplace_back(),
      MakeCase(name + (into_batch ? ", into a batch" : ""), std::move(env),
               steps, {.into_batch = into_batch}));
  return absl::OkStatus();
}

absl::Status Classics(bool is_quick) {
  constexpr int64_t kLanes = 64;
  std::vector<FramesCase> cases;
  // Steps alone say what the simulator costs; into a batch, what a user pays.
  for (const bool into_batch : {false, true}) {
    const auto add = [&](const std::string& name, auto env) {
      return AddClassic(name, into_batch, std::move(env), &cases);
    };
    RILL_RETURN_IF_ERROR(add("CartPole", MakeCartPole({.lanes = kLanes})));
    RILL_RETURN_IF_ERROR(
        add("MountainCar", MakeMountainCar({.lanes = kLanes})));
    RILL_RETURN_IF_ERROR(add("MountainCarContinuous",
                             MakeMountainCarContinuous({.lanes = kLanes})));
    RILL_RETURN_IF_ERROR(add("Acrobot", MakeAcrobot({.lanes = kLanes})));
    RILL_RETURN_IF_ERROR(add("Pendulum", MakePendulum({.lanes = kLanes})));
    RILL_RETURN_IF_ERROR(add("CartPole, 1 lane", MakeCartPole({.lanes = 1})));
  }
  return PrintLeast("64 lanes, random actions, one core", cases,
                    is_quick ? 8 : 200, FramesASecond);
}

// Changes nothing; with `keys`, as one that works on these leaves.
class Nothing final : public StepTransform {
 public:
  explicit Nothing(std::vector<std::string> keys) : keys_(std::move(keys)) {}
  absl::string_view name() const override { return "Nothing"; }
  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    for (const std::string& key : keys_) {
      const LeafSpec& leaf = *step.Find(key);
      plan.leaves.push_back({.key = key,
                             .dtype = leaf.dtype,
                             .shape = leaf.shape,
                             .use = LeafUse::kUpdate});
    }
    return plan;
  }

 private:
  const std::vector<std::string> keys_;
};

absl::StatusOr<std::unique_ptr<Env>> Transformed(
    std::vector<std::unique_ptr<StepTransform>> transforms) {
  RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = 64}));
  RILL_ASSIGN_OR_RETURN(
      std::unique_ptr<Env> env,
      TransformedEnv::Create(std::move(cart_pole), std::move(transforms)));
  return env;
}

absl::StatusOr<std::unique_ptr<Env>> TransformedByNothing(
    std::vector<std::string> keys) {
  std::vector<std::unique_ptr<StepTransform>> transforms;
  transforms.push_back(std::make_unique<Nothing>(std::move(keys)));
  return Transformed(std::move(transforms));
}

absl::StatusOr<std::unique_ptr<Env>> Limited() {
  RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = 64}));
  return MakeTimeLimit(std::move(cart_pole), {.max_steps = 500});
}

absl::StatusOr<std::unique_ptr<Env>> InFourParts() {
  std::vector<std::unique_ptr<Env>> parts;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    RILL_ASSIGN_OR_RETURN(parts.emplace_back(),
                          MakeCartPole({.lanes = 16, .seed = seed}));
  }
  return MakeVectorEnv(std::move(parts));
}

// Costs of what stands between CartPole and its caller.
absl::Status Between(bool is_quick) {
  // Writes nothing, so the ready action stays: the call is all that it adds.
  FunctionPolicy policy([](const TensorDict&, const ActContext&, Tensor*) {
    return absl::OkStatus();
  });
  std::vector<FramesCase> cases;
  const auto add = [&](std::string name, auto env,
                       Policy* with = nullptr) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(
        cases.emplace_back(),
        MakeCase(std::move(name), std::move(env), 1024, {.policy = with}));
    return absl::OkStatus();
  };
  // The first is what the others are compared with.
  RILL_RETURN_IF_ERROR(add("nothing", MakeCartPole({.lanes = 64})));
  RILL_RETURN_IF_ERROR(
      add("a policy that does nothing", MakeCartPole({.lanes = 64}), &policy));
  RILL_RETURN_IF_ERROR(
      add("TransformedEnv without a transform", Transformed({})));
  RILL_RETURN_IF_ERROR(
      add("TransformedEnv, a transform of nothing", TransformedByNothing({})));
  RILL_RETURN_IF_ERROR(
      add("TransformedEnv, a transform of observations",
          TransformedByNothing({"observation", "next/observation"})));
  RILL_RETURN_IF_ERROR(add("MakeTimeLimit", Limited()));
  RILL_RETURN_IF_ERROR(
      add("MakeVectorEnv, 4 parts of 16 lanes", InFourParts()));
  return PrintLeast("CartPole, 64 lanes, into a batch; what stands between",
                    cases, is_quick ? 8 : 500, [](double ns, double first) {
                      return absl::StrFormat("%10.2f ns a frame %+8.2f", ns,
                                             ns - first);
                    });
}

absl::Status Gymnasium(bool is_quick) {
  // A step is a round trip to Python, so few of them are enough.
  constexpr int64_t kSteps = 16;
  std::vector<FramesCase> cases;
  for (const int children : {1, 2}) {
    GymnasiumEnvOptions options = {
        .id = "CartPole-v1", .lanes = 64, .children = children};
    if (const char* path = std::getenv("RILL_GYMNASIUM_PATH")) {
      options.python_path = {path};
    }
    auto env = MakeGymnasiumEnv(options);
    // Most machines have no Gymnasium; RILL_GYMNASIUM_PATH tells of one that is
    // not on Python's path.
    if (!env.ok()) {
      absl::PrintF("GymnasiumEnv: skipped: %s\n", env.status().message());
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(cases.emplace_back(),
                          MakeCase(children == 1 ? "one child" : "two children",
                                   std::move(env), kSteps, {}));
  }
  return PrintLeast("GymnasiumEnv, CartPole, 64 lanes, into a batch", cases,
                    is_quick ? 20 : 300, FramesASecondAndRatio);
}

absl::Status RunAll(bool is_quick) {
  RILL_RETURN_IF_ERROR(Classics(is_quick));
  RILL_RETURN_IF_ERROR(Between(is_quick));
  return Gymnasium(is_quick);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  return rill::QuickMain("envs", rill::kUsage, argc, argv, rill::RunAll);
}
