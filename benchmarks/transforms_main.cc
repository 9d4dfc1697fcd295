// SPDX-License-Identifier: Apache-2.0
// Transforms that a gather does on the way, beside the plain gather, the same
// transforms over whole batches, and the machine's own limit; advantages;
// transforms beside an environment.
// benchmarks/transforms runs it; --help tells the flags.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/least_ns.h"
#include "rill/benchmarks/quick_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/transformed_env.h"
#include "rill/estimators/value_estimates.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

constexpr absl::string_view kUsage =
    R"(Samples through transforms, and prints microseconds and ratios. A figure is
the least of many runs, which take turns with the others of their table.
  --quick  fewer rows and repetitions (seconds, not minutes)
)";

// Prints the cases, each with its ratio to the first.
absl::Status Compare(absl::string_view title,
                     const std::vector<FramesCase>& cases, int turns) {
  return PrintLeast(title, cases, turns, [](double ns, double first) {
    return absl::StrFormat("%10.2f us  %6.2f", ns / 1e3, ns / first);
  });
}

// A transform of one map of rows, for one leaf.
class OneStep final : public RowwiseTransform {
 public:
  OneStep(std::shared_ptr<const RowMap> map, std::string key)
      : RowwiseTransform({.map = std::move(map), .in_keys = {std::move(key)}}) {
  }
  absl::string_view name() const override { return "OneStep"; }
};

using Transforms = std::vector<std::unique_ptr<BatchTransform>>;

absl::StatusOr<Transforms> Steps(const std::vector<RowStep>& steps,
                                 const std::string& key, bool is_fused) {
  Transforms transforms;
  for (const RowStep& step : steps) {
    RILL_ASSIGN_OR_RETURN(auto map, MakeRowStep(step));
    transforms.push_back(std::make_unique<OneStep>(std::move(map), key));
  }
  if (is_fused) return transforms;
  // A function is no part of a gather, and so none of them is.
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        FunctionTransform::Create({.forward = [](TensorDict*) {
                          return absl::OkStatus();
                        }}));
  return transforms;
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakeBuffer(
    std::shared_ptr<Storage> storage, int64_t batch_size,
    std::unique_ptr<Sampler> sampler, Transforms transforms) {
  return ReplayBuffer::Create({.storage = std::move(storage),
                               .sampler = std::move(sampler),
                               .transforms = std::move(transforms),
                               .batch_size = batch_size});
}

// A buffer's samples into one batch.
FramesCase Samples(std::string name, std::unique_ptr<ReplayBuffer> buffer) {
  auto batch = std::make_shared<TensorDict>();
  return {std::move(name), 1,
          [buffer = std::shared_ptr<ReplayBuffer>(std::move(buffer)), batch] {
            return buffer->SampleInto(batch.get());
          }};
}

absl::StatusOr<std::shared_ptr<Storage>> Filled(int64_t rows,
                                                const TensorDictSpec& spec) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Storage> storage,
                        DenseStorage::Create({.capacity = rows}));
  constexpr int64_t kPiece = 1000;
  RILL_ASSIGN_OR_RETURN(const TensorDict piece,
                        spec.Random({1, kPiece}, Rng(1), 0));
  // The same random rows again and again: drawing them would take longer than
  // all that is measured.
  for (int64_t row = 0; row < rows; row += kPiece) {
    RILL_RETURN_IF_ERROR(storage->Extend(piece).status());
  }
  return storage;
}

// Stores past the caches, and nothing else.
FramesCase StreamingStores(int64_t bytes) {
  auto out = std::make_shared<Tensor>(*Tensor::Zeros(DType::kUInt8, {bytes}));
  return {"streaming stores of the output alone", 1, [out, bytes] {
            const hwy::HWY_NAMESPACE::ScalableTag<uint8_t> d;
            const auto lanes =
                static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
            const auto value = hwy::HWY_NAMESPACE::Set(d, 1);
            auto* to = reinterpret_cast<uint8_t*>(out->raw_data());
            for (int64_t i = 0; i + lanes <= bytes; i += lanes) {
              hwy::HWY_NAMESPACE::Stream(value, d, to + i);
            }
            hwy::FlushStream();
            return absl::OkStatus();
          }};
}

absl::Status Atari(bool is_quick) {
  constexpr int64_t kBatch = 256;
  constexpr int64_t kFrames = 4;
  constexpr int64_t kSide = 84;
  TensorDictSpec spec;
  RILL_RETURN_IF_ERROR(
      spec.Set("pixels", LeafSpec::Unbounded(DType::kUInt8, {kSide, kSide})));
  RILL_RETURN_IF_ERROR(
      // Never done: one trajectory, in which stacks are whole.
      spec.Set("next/done", LeafSpec::Bounded(DType::kBool, {1}, 0, 0)));
  RILL_ASSIGN_OR_RETURN(const auto storage,
                        Filled(is_quick ? 10'000 : 100'000, spec));
  const auto make =
      [&](std::vector<RowStep> steps,
          bool is_fused) -> absl::StatusOr<std::unique_ptr<ReplayBuffer>> {
    RILL_ASSIGN_OR_RETURN(
        SampleUnit unit,
        MakeTransitions({.frames = StackFrames::Options{.num_frames = kFrames,
                                                        .keys = {"pixels"},
                                                        .dim = -3,
                                                        .new_dim = true}}));
    RILL_ASSIGN_OR_RETURN(auto sampler,
                          MakeUniformSamplerOver(std::move(unit)));
    RILL_ASSIGN_OR_RETURN(Transforms transforms,
                          Steps(steps, "pixels", is_fused));
    return MakeBuffer(storage, kBatch, std::move(sampler),
                      std::move(transforms));
  };
  const std::vector<RowStep> unit = {{.kind = RowStep::Kind::kUnitInterval}};
  std::vector<FramesCase> cases;
  cases.push_back(StreamingStores(kBatch * kFrames * kSide * kSide *
                                  static_cast<int64_t>(sizeof(float))));
  RILL_ASSIGN_OR_RETURN(auto fused, make(unit, true));
  cases.push_back(Samples("in the gather", std::move(fused)));
  RILL_ASSIGN_OR_RETURN(auto apart, make(unit, false));
  cases.push_back(Samples("over the batch", std::move(apart)));
  RILL_ASSIGN_OR_RETURN(auto plain, make({}, true));
  cases.push_back(Samples("stacks of bytes, no transform", std::move(plain)));
  return Compare("256 stacks of 4 x 84 x 84 bytes to float32 in [0, 1]", cases,
                 is_quick ? 11 : 301);
}

// Samples of `storage` through `steps` of "observation", as `name` says: plain,
// on the way, and over the whole batch.
absl::Status CompareSteps(absl::string_view title, absl::string_view name,
                          const std::shared_ptr<Storage>& storage,
                          int64_t batch_size, const std::vector<RowStep>& steps,
                          int turns) {
  std::vector<FramesCase> cases;
  const auto add = [&](std::string of, const std::vector<RowStep>& wanted,
                       bool is_fused) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(Transforms transforms,
                          Steps(wanted, "observation", is_fused));
    RILL_ASSIGN_OR_RETURN(auto buffer,
                          MakeBuffer(storage, batch_size, MakeUniformSampler(),
                                     std::move(transforms)));
    cases.push_back(Samples(std::move(of), std::move(buffer)));
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(add("no transform", {}, true));
  RILL_RETURN_IF_ERROR(add(absl::StrCat(name, " in the gather"), steps, true));
  RILL_RETURN_IF_ERROR(
      add(absl::StrCat(name, " over the batch"), steps, false));
  return Compare(title, cases, turns);
}

absl::Status Normalised(bool is_quick) {
  constexpr int64_t kWidth = 376;
  TensorDictSpec spec;
  RILL_RETURN_IF_ERROR(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {kWidth})));
  RILL_ASSIGN_OR_RETURN(const auto storage,
                        Filled(is_quick ? 20'000 : 1'000'000, spec));
  // As observations of Humanoid are wide: one factor and one shift an element.
  const std::vector<RowStep> steps = {
      {.scale = std::vector<double>(kWidth, 1.5),
       .loc = std::vector<double>(kWidth, -0.5)}};
  return CompareSteps("4096 rows of 376 float32, normalised", "normalised",
                      storage, 4096, steps, is_quick ? 11 : 301);
}

absl::Status FiveTransforms(bool is_quick) {
  TensorDictSpec spec;
  for (const char* key : {"observation", "next/observation"}) {
    RILL_RETURN_IF_ERROR(
        spec.Set(key, LeafSpec::Unbounded(DType::kFloat32, {4})));
  }
  RILL_RETURN_IF_ERROR(spec.Set("action", LeafSpec::Categorical(2)));
  RILL_RETURN_IF_ERROR(
      spec.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  for (const char* flag : {"done", "terminated", "truncated"}) {
    RILL_RETURN_IF_ERROR(
        spec.Set(std::string("next/") + flag, LeafSpec::Binary({1})));
  }
  RILL_ASSIGN_OR_RETURN(const auto storage, Filled(100'000, spec));
  const std::vector<RowStep> five = {
      {.scale = {2}, .loc = {1}},
      {.kind = RowStep::Kind::kClip, .low = -3, .high = 3},
      {.kind = RowStep::Kind::kShiftThenDivide, .scale = {3}, .loc = {1}},
      {.kind = RowStep::Kind::kClip, .low = -1, .high = 1},
      {.scale = {0.5}}};
  // A run takes microseconds, so the least of many more is looked for.
  return CompareSteps("256 rows of CartPole", "five", storage, 256, five,
                      is_quick ? 1001 : 20001);
}

absl::Status GaeOfABatch(bool is_quick) {
  const Shape shape = {256, 128};
  const LeafSpec number = LeafSpec::Unbounded(DType::kFloat32, {1});
  const LeafSpec flag = LeafSpec::Binary({1});
  const Rng rng(1);
  EstimatorSteps steps;
  RILL_ASSIGN_OR_RETURN(steps.reward, number.Random(shape, rng, 0));
  RILL_ASSIGN_OR_RETURN(steps.value, number.Random(shape, rng, 1));
  RILL_ASSIGN_OR_RETURN(steps.next_value, number.Random(shape, rng, 2));
  RILL_ASSIGN_OR_RETURN(steps.done, flag.Random(shape, rng, 3));
  RILL_ASSIGN_OR_RETURN(steps.terminated, flag.Random(shape, rng, 4));
  // The cost of memory alone, for one of the five arrays.
  RILL_ASSIGN_OR_RETURN(const Tensor copy, steps.reward.Clone());
  // Made by the first run and reused by the others.
  const auto made = std::make_shared<Advantages>();
  return Compare(
      "advantages of 256 lanes of 128 steps",
      {{"a copy of the rewards alone", 1,
        [&] {
          std::memcpy(copy.raw_data(), steps.reward.raw_data(),
                      static_cast<size_t>(copy.size_bytes()));
          return absl::OkStatus();
        }},
       {"GAE", 1, [&] { return GaeAdvantage(steps, 0.99, 0.95, made.get()); }}},
      is_quick ? 101 : 5001);
}

// Steps of 64 CartPole lanes, each of which is reset when it is done.
absl::StatusOr<FramesCase> Lanes(
    std::string name, std::vector<std::unique_ptr<StepTransform>> transforms) {
  constexpr int64_t kLanes = 64;
  constexpr int64_t kSteps = 64;
  struct Loop {
    std::unique_ptr<Env> env;
    StepDriver driver;
  };
  const auto loop = std::make_shared<Loop>();
  RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = kLanes}));
  RILL_ASSIGN_OR_RETURN(
      loop->env,
      TransformedEnv::Create(std::move(cart_pole), std::move(transforms)));
  RILL_ASSIGN_OR_RETURN(loop->driver, StepDriver::Create(loop->env.get()));
  RILL_RETURN_IF_ERROR(loop->driver.ResetAll());
  return FramesCase{.name = std::move(name),
                    .frames = kLanes * kSteps,
                    .run = [loop]() -> absl::Status {
                      for (int64_t i = 0; i < kSteps; ++i) {
                        RILL_RETURN_IF_ERROR(loop->driver.Step());
                        RILL_RETURN_IF_ERROR(loop->driver.Advance());
                      }
                      return absl::OkStatus();
                    }};
}

absl::Status BesideLanes(bool is_quick) {
  std::vector<FramesCase> cases;
  RILL_ASSIGN_OR_RETURN(cases.emplace_back(), Lanes("no transform", {}));
  for (const auto& [name, decay] :
       {std::pair("StepCounter, RewardSum, VecNorm", VecNorm::Options().decay),
        std::pair("the same, exact sums (decay 1)", 1.0)}) {
    std::vector<std::unique_ptr<StepTransform>> three;
    RILL_ASSIGN_OR_RETURN(three.emplace_back(),
                          StepCounter::Create({.max_steps = 500}));
    RILL_ASSIGN_OR_RETURN(three.emplace_back(), RewardSum::Create({}));
    RILL_ASSIGN_OR_RETURN(three.emplace_back(),
                          VecNorm::Create({.shapes = {{4}}, .decay = decay}));
    RILL_ASSIGN_OR_RETURN(cases.emplace_back(), Lanes(name, std::move(three)));
  }
  return PrintLeast("TransformedEnv of 64 lanes of CartPole", cases,
                    is_quick ? 20 : 2000, [](double ns, double first) {
                      return absl::StrFormat("%10.2f ns a lane and step %+8.2f",
                                             ns, ns - first);
                    });
}

absl::Status RunAll(bool is_quick) {
  RILL_RETURN_IF_ERROR(Atari(is_quick));
  RILL_RETURN_IF_ERROR(Normalised(is_quick));
  RILL_RETURN_IF_ERROR(FiveTransforms(is_quick));
  RILL_RETURN_IF_ERROR(GaeOfABatch(is_quick));
  return BesideLanes(is_quick);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  return rill::QuickMain("transforms", rill::kUsage, argc, argv, rill::RunAll);
}
