// SPDX-License-Identifier: Apache-2.0
#include "rill/onnx/onnx_policy.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/collectors/conformance/policy_conformance.h"
#include "rill/envs/policies/network_actions.h"
#include "rill/envs/policies/policy.h"
#include "rill/onnx/onnx_model.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

OnnxModel Loaded(const std::string& name) {
  auto model = OnnxModel::Load("testing/fixtures/onnx/" + name + ".onnx");
  RILL_EXPECT_OK(model);
  return model.ok() ? *model : OnnxModel();
}

std::unique_ptr<OnnxPolicy> Made(OnnxPolicy::Options options) {
  auto policy = OnnxPolicy::Create(std::move(options));
  RILL_EXPECT_OK(policy);
  return policy.ok() ? *std::move(policy) : nullptr;
}

TensorDict DictOf(int64_t lanes) { return TensorDict({lanes}); }

void SetZeros(const std::string& key, DType dtype, std::vector<int64_t> sizes,
              TensorDict* dict) {
  RILL_EXPECT_OK(dict->Set(key, *Tensor::Zeros(dtype, *Shape::Create(sizes))));
}

// Observations of the fixtures, each lane another.
TensorDict Root(int64_t lanes) {
  TensorDict root({lanes});
  SetZeros("observation", DType::kFloat32, {lanes, 3}, &root);
  for (int64_t i = 0; i < 3 * lanes; ++i) {
    root.Find("observation")->data<float>()[i] =
        static_cast<float>(i * 5 % 13 - 6) / 8;
  }
  return root;
}

// The leaves of an action int64 [lanes].
TensorDict Step(int64_t lanes) {
  TensorDict step({lanes});
  SetZeros("action", DType::kInt64, {lanes}, &step);
  SetZeros("log_prob", DType::kFloat32, {lanes, 1}, &step);
  return step;
}

// The same with an action float32 [lanes, 4].
TensorDict ContinuousStep(int64_t lanes) {
  TensorDict step = Step(lanes);
  SetZeros("action", DType::kFloat32, {lanes, 4}, &step);
  return step;
}

// linear.onnx makes this of a lane of the root.
std::vector<float> LogitsOf(const TensorDict& root, int64_t lane) {
  const float* const x = root.Find("observation")->data<float>() + 3 * lane;
  return {0.5f * x[0] + x[1] - 2 * x[2] + 0.1f,
          -x[0] + 0.25f * x[1] + x[2] + 0.2f, 2 * x[0] - 0.5f * x[1] - 0.3f,
          3 * x[1] + 0.75f * x[2]};
}

// The leaf "hidden" of recurrent.onnx, as an output.
TensorDictSpec Hidden() {
  TensorDictSpec outputs;
  RILL_EXPECT_OK(
      outputs.Set("next/hidden", LeafSpec::Unbounded(DType::kFloat32, {2})));
  return outputs;
}

TEST(OnnxPolicyTest, Example) {
  const std::string path = "testing/fixtures/onnx/linear.onnx";
  RILL_ASSERT_OK_AND_ASSIGN(OnnxModel model, OnnxModel::Load(path));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto policy, OnnxPolicy::Create(
                       {.model = model, .actions = ActionKind::kCategorical}));
  const TensorDict root = Root(3);
  TensorDict step = Step(3);
  EXPECT_THAT(policy->Act(root, {}, &step), IsOkAndHolds(0));
  for (int64_t lane = 0; lane < 3; ++lane) {
    const std::vector<float> logits = LogitsOf(root, lane);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit);
    const auto action =
        static_cast<size_t>(step.Find("action")->data<int64_t>()[lane]);
    EXPECT_NEAR(step.Find("log_prob")->data<float>()[lane],
                logits[action] - std::log(sum), 1e-5);
  }
}

TEST(OnnxPolicyTest, AGreedyActionIsTheLargestLegalValue) {
  constexpr int64_t kLanes = 9;
  TensorDict root = Root(kLanes), step = Step(kLanes);
  SetZeros("mask", DType::kBool, {kLanes, 4}, &root);
  for (int64_t i = 0; i < 4 * kLanes; ++i) {
    root.Find("mask")->data<bool>()[i] = i % 3 != 0;
  }
  const auto policy = Made({.model = Loaded("linear"),
                            .actions = ActionKind::kGreedy,
                            .mask_key = "mask"});
  RILL_ASSERT_OK(policy->Act(root, {}, &step));
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const std::vector<float> logits = LogitsOf(root, lane);
    int64_t best = -1;
    for (int64_t i = 0; i < 4; ++i) {
      if ((4 * lane + i) % 3 != 0 &&
          (best < 0 || logits[static_cast<size_t>(i)] >
                           logits[static_cast<size_t>(best)])) {
        best = i;
      }
    }
    EXPECT_EQ(step.Find("action")->data<int64_t>()[lane], best);
  }
}

TEST(OnnxPolicyTest, DeterministicActionsAreWrittenToTheirLeafByTheModel) {
  const TensorDict root = Root(5);
  TensorDict step = ContinuousStep(5);
  RILL_ASSERT_OK(Made({.model = Loaded("linear")})->Act(root, {}, &step));
  for (int64_t lane = 0; lane < 5; ++lane) {
    const std::vector<float> want = LogitsOf(root, lane);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(step.Find("action")->data<float>()[4 * lane + i],
                  want[static_cast<size_t>(i)], 1e-5);
    }
  }
}

TEST(OnnxPolicyTest, WithoutExplorationANormalActionIsItsMode) {
  const TensorDict root = Root(5);
  TensorDict step = ContinuousStep(5);
  const auto policy = Made({.model = Loaded("normal"),
                            .actions = ActionKind::kTanhNormal,
                            .bounds = {.low = {-2}, .high = {4}}});
  RILL_ASSERT_OK(policy->Act(root, {.explore = false}, &step));
  for (int64_t lane = 0; lane < 5; ++lane) {
    const std::vector<float> loc = LogitsOf(root, lane);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(step.Find("action")->data<float>()[4 * lane + i],
                  1 + 3 * std::tanh(loc[static_cast<size_t>(i)]), 1e-5);
    }
  }
}

TEST(OnnxPolicyTest, RunsRepeatAndSeedsAndStepsDiffer) {
  const OnnxModel model = Loaded("linear");
  const TensorDict root = Root(64);
  const auto drawn = [&](uint64_t own, uint64_t callers, int64_t at) {
    TensorDict step = Step(64);
    const auto policy = Made(
        {.model = model, .actions = ActionKind::kCategorical, .seed = own});
    RILL_EXPECT_OK(policy->Act(root, {.step = at, .seed = callers}, &step));
    const auto actions = *step.Flat<int64_t>("action");
    return std::vector<int64_t>(actions.begin(), actions.end());
  };
  EXPECT_EQ(drawn(1, 2, 3), drawn(1, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(2, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 3, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 2, 4));
}

TEST(OnnxPolicyTest, RecurrentStateIsALeafOfTheStep) {
  TensorDict root = Root(3), step = Step(3);
  RILL_ASSERT_OK(root.Set(
      "hidden", *Tensor::From<float>({0, 1, -1, 0.5f, 2, 0.25f}, {3, 2})));
  SetZeros("next/hidden", DType::kFloat32, {3, 2}, &step);
  const auto policy = Made({.model = Loaded("recurrent"),
                            .in_keys = {"observation", "hidden"},
                            .actions = ActionKind::kGreedy,
                            .outputs = Hidden()});
  EXPECT_THAT(policy->output_spec().LeafKeys(), ElementsAre("next/hidden"));
  RILL_ASSERT_OK(policy->Act(root, {}, &step));
  for (int64_t lane = 0; lane < 3; ++lane) {
    const std::vector<float> l = LogitsOf(root, lane);
    const float* const hidden = root.Find("hidden")->data<float>() + 2 * lane;
    const float* const next =
        step.Find("next/hidden")->data<float>() + 2 * lane;
    EXPECT_NEAR(next[0],
                std::tanh(l[0] + 0.5f * l[1] - 0.5f * l[3] + hidden[0]), 1e-5);
    EXPECT_NEAR(next[1], std::tanh(-l[0] + 0.25f * l[2] + 2 * l[3] + hidden[1]),
                1e-5);
  }
}

// The step's leaf has other dimensions or gaps, or is one that goes in.
TEST(OnnxPolicyTest, AnOutputIsTheSameWhereTheModelCannotWriteToItsLeaf) {
  TensorDictSpec outputs;
  RILL_ASSERT_OK(
      outputs.Set("second", LeafSpec::Unbounded(DType::kFloat32, {1})));
  const auto policy = Made(
      {.model = Loaded("swap"), .in_keys = {"a", "b"}, .outputs = outputs});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide,
                            Tensor::Zeros(DType::kFloat32, {4, 3}));
  for (const char* const leaf : {"other dimensions", "gaps", "an input"}) {
    SCOPED_TRACE(leaf);
    TensorDict root({4}), step({4});
    RILL_ASSERT_OK(root.Set("a", *Tensor::From<float>({1, 2, 3, 4}, {4, 1})));
    RILL_ASSERT_OK(root.Set("b", *Tensor::From<float>({5, 6, 7, 8}, {4, 1})));
    SetZeros("action", DType::kFloat32, {4}, &step);
    SetZeros("second", DType::kFloat32, {4, 1, 1}, &step);
    if (leaf == std::string("gaps")) {
      RILL_ASSERT_OK(step.Set("action", *wide.Slice(1, 1, 2)));
    } else if (leaf == std::string("an input")) {
      RILL_ASSERT_OK(step.Set("action", *root.Find("a")));
      RILL_ASSERT_OK(step.Set("second", *root.Find("b")));
    }
    RILL_ASSERT_OK(policy->Act(root, {}, &step));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor action,
                              step.Find("action")->Contiguous());
    EXPECT_THAT(*action.Flat<float>(), ElementsAre(5, 6, 7, 8));
    EXPECT_THAT(*step.Flat<float>("second"), ElementsAre(1, 2, 3, 4));
  }
  EXPECT_THAT(*wide.Flat<float>(),
              ElementsAre(0, 5, 0, 0, 6, 0, 0, 7, 0, 0, 8, 0));
}

TEST(OnnxPolicyTest, OptionsThatDoNotFitTheModelAreRefused) {
  const OnnxModel linear = Loaded("linear"), types = Loaded("types");
  EXPECT_THAT(OnnxPolicy::Create({}), StatusIs(kInvalid, HasSubstr("model")));
  EXPECT_THAT(
      OnnxPolicy::Create({.model = linear, .in_keys = {"observation", "h"}}),
      StatusIs(kInvalid,
               HasSubstr("in_keys: got 2, want one for each input of the "
                         "model: \"observation\" float32[?, 3]")));
  EXPECT_THAT(OnnxPolicy::Create({.model = linear, .outputs = Hidden()}),
              StatusIs(kInvalid, HasSubstr("got 1 of the model (\"logits\" "
                                           "float32[?, 4]), want 1 for")));
  EXPECT_THAT(
      OnnxPolicy::Create({.model = linear, .actions = ActionKind::kTanhNormal}),
      StatusIs(kInvalid, HasSubstr("want 2 for the action")));
  EXPECT_THAT(OnnxPolicy::Create({.model = linear, .mask_key = "mask"}),
              StatusIs(kInvalid, HasSubstr("mask_key")));
  OnnxPolicy::Options options = {.model = types, .in_keys = {}};
  for (const OnnxModel::Value& value : types.inputs()) {
    options.in_keys.push_back(value.name);
  }
  for (size_t i = 1; i < types.outputs().size(); ++i) {
    RILL_ASSERT_OK(
        options.outputs.Set(types.outputs()[i].name,
                            LeafSpec::Unbounded(types.outputs()[i].dtype, {})));
  }
  options.actions = ActionKind::kGreedy;
  EXPECT_THAT(OnnxPolicy::Create(options),
              StatusIs(kInvalid, HasSubstr("got output \"uint8_out\" uint8[?] "
                                           "of the model, want float32")));
}

struct BadCase {
  const char* name;
  TensorDict root, step;
  const char* text;
};

TEST(OnnxPolicyTest, LeavesThatDoNotFitAreAStatusWithKeyGotAndWant) {
  const auto policy = Made({.model = Loaded("linear"),
                            .actions = ActionKind::kCategorical,
                            .mask_key = "mask"});
  const TensorDict root = [] {
    TensorDict made = Root(2);
    SetZeros("mask", DType::kBool, {2, 4}, &made);
    return made;
  }();
  std::vector<BadCase> cases;
  cases.push_back({"no such leaf", DictOf(2), Step(2), "observation"});
  cases.push_back({"another width", root, Step(2),
                   "got float32[2, 4] on cpu, want \"observation\" "
                   "float32[?, 3] in host memory; in_keys: \"observation\""});
  SetZeros("observation", DType::kFloat32, {2, 4}, &cases.back().root);
  cases.push_back({"another dtype", root, Step(2), "got float64[2, 3] on cpu"});
  SetZeros("observation", DType::kFloat64, {2, 3}, &cases.back().root);
  cases.push_back({"no action is legal", root, Step(2),
                   "\"mask\": row 0 has no legal action"});
  cases.push_back({"mask of another size", root, Step(2),
                   "\"mask\": got bool[2, 3] on cpu, want bool for "
                   "float32[2, 4] on cpu"});
  SetZeros("mask", DType::kBool, {2, 3}, &cases.back().root);
  cases.push_back({"no mask", Root(2), Step(2), "mask"});
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.name);
    TensorDict step = bad.step;
    EXPECT_THAT(policy->Act(bad.root, {}, &step),
                StatusIs(::testing::_, HasSubstr(bad.text)));
  }
  const auto greedy =
      Made({.model = Loaded("linear"), .actions = ActionKind::kGreedy});
  TensorDict step = Step(2);
  EXPECT_THAT(
      greedy->Act(Root(5), {}, &step),
      StatusIs(kInvalid, HasSubstr("\"action\": got int64[5] on cpu of the "
                                   "model, want int64[2] on cpu")));
  step = DictOf(2);
  EXPECT_THAT(greedy->Act(Root(2), {}, &step),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("the step has no leaf \"action\"")));
  const auto deterministic = Made({.model = Loaded("linear")});
  step = Step(2);
  SetZeros("action", DType::kFloat32, {2, 3}, &step);
  EXPECT_THAT(
      deterministic->Act(Root(2), {}, &step),
      StatusIs(kInvalid,
               HasSubstr("\"action\": got float32[2, 4] on cpu of the model, "
                         "want float32[2, 3] on cpu")));
}

PolicySubject MaskedCategorical() {
  TensorDict root = Root(6);
  SetZeros("mask", DType::kBool, {6, 4}, &root);
  for (int64_t i = 0; i < 24; ++i) {
    root.Find("mask")->data<bool>()[i] = i % 3 != 1;
  }
  SetZeros("hidden", DType::kFloat32, {6, 2}, &root);
  return {.policy = Made({.model = Loaded("recurrent"),
                          .in_keys = {"observation", "hidden"},
                          .actions = ActionKind::kCategorical,
                          .mask_key = "mask",
                          .outputs = Hidden()}),
          .root = root,
          .action = LeafSpec::Categorical(4),
          .mask_key = "mask"};
}

PolicySubject Greedy() {
  return {.policy =
              Made({.model = Loaded("linear"), .actions = ActionKind::kGreedy}),
          .root = Root(5),
          .action = LeafSpec::Categorical(4)};
}

PolicySubject Normal() {
  return {.policy = Made(
              {.model = Loaded("normal"), .actions = ActionKind::kTanhNormal}),
          .root = Root(5),
          .action = LeafSpec::Bounded(DType::kFloat32, {4}, -1, 1)};
}

PolicySubject Deterministic() {
  return {.policy = Made({.model = Loaded("linear")}),
          .root = Root(5),
          .action = LeafSpec::Unbounded(DType::kFloat32, {4})};
}

INSTANTIATE_TEST_SUITE_P(OnnxPolicy, PolicyConformanceTest,
                         ::testing::Values(MaskedCategorical, Greedy, Normal,
                                           Deterministic));

}  // namespace
}  // namespace rill
