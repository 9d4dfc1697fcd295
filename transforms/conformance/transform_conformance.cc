// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/transform_conformance.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "rill/base/rng.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"

namespace rill {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int64_t kLanes = 3;

TensorDict RandomBatch(const TensorDictSpec& spec, const Shape& shape,
                       uint64_t batch) {
  auto random = spec.Random(shape, Rng(kSeed, RngStream::kUser), batch);
  RILL_EXPECT_OK(random);
  return random.ok() ? *std::move(random) : TensorDict(shape);
}

// Puts a transform through everything, so that it has a state if it has one.
// Gives back all that it made.
std::vector<TensorDict> Train(const TensorDictSpec& batch_spec, uint64_t seed,
                              FakeEnvironment& environment,
                              Transform& transform) {
  std::vector<TensorDict> made;
  for (uint64_t i = 0; i < 4; ++i) {
    const std::vector<uint8_t> mask = {i == 0, i == 0 || i == 2, i == 0};
    RILL_EXPECT_OK(environment.Reset(mask, transform));
    auto step = environment.Step(transform);
    RILL_EXPECT_OK(step);
    if (step.ok()) made.push_back(*std::move(step));
    for (auto work : {&Transform::Forward, &Transform::Inverse}) {
      TensorDict batch = RandomBatch(batch_spec, {6}, seed + i);
      RILL_EXPECT_OK((transform.*work)(&batch));
      made.push_back(std::move(batch));
    }
  }
  return made;
}

void ExpectEqual(const std::vector<TensorDict>& a,
                 const std::vector<TensorDict>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    RILL_EXPECT_OK(a[i].CheckEqual(b[i])) << i;
  }
}

TensorDict StateOf(const Transform& transform) {
  auto state = transform.SaveState();
  RILL_EXPECT_OK(state);
  return state.ok() ? *std::move(state) : TensorDict();
}

// --- Specs -------------------------------------------------------------------

TEST_P(TransformConformanceTest, SpecsPredictWhatForwardAndInverseMake) {
  for (const Shape& shape : {Shape({5}), Shape({2, 3}), Shape({0})}) {
    auto transform = MakeTransform();
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec forward,
                              transform->ForwardSpec(batch_spec()));
    TensorDict batch = RandomBatch(batch_spec(), shape, 0);
    RILL_ASSERT_OK(transform->Forward(&batch));
    RILL_EXPECT_OK(forward.CheckLayout("Forward", batch));

    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec inverse,
                              transform->InverseSpec(batch_spec()));
    batch = RandomBatch(batch_spec(), shape, 0);
    RILL_ASSERT_OK(transform->Inverse(&batch));
    RILL_EXPECT_OK(inverse.CheckLayout("Inverse", batch));
  }
}

TEST_P(TransformConformanceTest, SpecsPredictTheValuesDomains) {
  auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec forward,
                            transform->ForwardSpec(batch_spec()));
  TensorDict batch = RandomBatch(batch_spec(), {64}, 0);
  RILL_ASSERT_OK(transform->Forward(&batch));
  RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(Device::Cpu()));
  RILL_EXPECT_OK(forward.CheckValues("Forward", batch));
}

TEST_P(TransformConformanceTest, StepSpecPredictsRootsAndSteps) {
  auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec want,
                            transform->StepSpec(step_spec()));
  FakeEnvironment environment(step_spec(), kLanes, kSeed);
  RILL_ASSERT_OK(environment.Reset({1, 1, 1}, *transform));
  TensorDictSpec root = want;
  for (const TensorDictSpec::Leaf& leaf : want.leaves()) {
    if (leaf.key == "action" || leaf.key.rfind("next/", 0) == 0) {
      root.Erase(leaf.key);
    }
  }
  for (int i = 0; i < 3; ++i) {
    RILL_EXPECT_OK(root.CheckLayout("OnReset", environment.root()));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict step,
                              environment.Step(*transform));
    RILL_EXPECT_OK(want.CheckValues("OnStep", step));
    RILL_ASSERT_OK(environment.Reset({0, 1, 0}, *transform));
  }
}

// --- What a transform may touch ----------------------------------------------

TEST_P(TransformConformanceTest, InverseLeavesTheCallersBytes) {
  auto transform = MakeTransform();
  const TensorDict callers = RandomBatch(batch_spec(), {2, 3}, 0);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, callers.Clone());
  TensorDict batch = callers;
  RILL_ASSERT_OK(transform->Inverse(&batch));
  RILL_EXPECT_OK(callers.CheckEqual(before));
}

TEST_P(TransformConformanceTest, StepLeavesBytesThatOthersHold) {
  auto transform = MakeTransform();
  FakeEnvironment environment(step_spec(), kLanes, kSeed);
  RILL_ASSERT_OK(environment.Reset({1, 1, 1}, *transform));
  const TensorDict root = environment.root();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict held, root.Clone());
  RILL_ASSERT_OK(held.Update(RandomBatch(step_spec(), {kLanes}, 7)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, held.Clone());
  TensorDict step = held;
  RILL_ASSERT_OK(transform->OnStep(&step));
  RILL_ASSERT_OK(transform->OnReset({1, 1, 1}, &step));
  RILL_EXPECT_OK(held.CheckEqual(before));
}

TEST_P(TransformConformanceTest, ResetTouchesOnlyMaskedLanes) {
  auto transform = MakeTransform();
  FakeEnvironment environment(step_spec(), kLanes, kSeed);
  RILL_ASSERT_OK(environment.Reset({1, 1, 1}, *transform));
  for (const std::vector<uint8_t>& mask :
       std::vector<std::vector<uint8_t>>{{0, 0, 0}, {0, 1, 0}, {1, 0, 1}}) {
    RILL_ASSERT_OK(environment.Step(*transform));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before,
                              environment.root().Clone());
    RILL_ASSERT_OK(environment.Reset(mask, *transform));
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      if (mask[static_cast<size_t>(lane)] != 0) continue;
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict was, before.Index(lane));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict is,
                                environment.root().Index(lane));
      RILL_EXPECT_OK(is.CheckEqual(was)) << "lane " << lane;
    }
  }
}

TEST_P(TransformConformanceTest, NewLeavesAreZeroOutsideTheMaskedLanes) {
  auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict root,
      RandomBatch(step_spec(), {kLanes}, 0).Exclude({"next", "action"}));
  const std::vector<std::string> before = root.LeafKeys();
  RILL_ASSERT_OK(transform->OnReset({0, 1, 0}, &root));
  for (const std::string& key : root.LeafKeys()) {
    if (std::find(before.begin(), before.end(), key) != before.end()) continue;
    for (int64_t lane : {0, 2}) {
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor row, root.Find(key)->Index(lane));
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor zeros,
                                Tensor::Zeros(row.dtype(), row.shape()));
      EXPECT_THAT(row.BitEquals(zeros), IsOkAndHolds(true)) << key;
    }
  }
}

// --- State -------------------------------------------------------------------

TEST_P(TransformConformanceTest, EqualTransformsMakeEqualThings) {
  auto a = MakeTransform();
  auto b = MakeTransform();
  EXPECT_FALSE(a->name().empty());
  EXPECT_EQ(a->name(), b->name());
  FakeEnvironment environment_a(step_spec(), kLanes, kSeed);
  FakeEnvironment environment_b(step_spec(), kLanes, kSeed);
  ExpectEqual(Train(batch_spec(), 0, environment_a, *a),
              Train(batch_spec(), 0, environment_b, *b));
  RILL_EXPECT_OK(StateOf(*a).CheckEqual(StateOf(*b)));
}

TEST_P(TransformConformanceTest, LoadedStateGoesOnAsTheSavedOne) {
  auto saved = MakeTransform();
  FakeEnvironment environment(step_spec(), kLanes, kSeed);
  Train(batch_spec(), 0, environment, *saved);
  const TensorDict state = StateOf(*saved);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, state.Clone());

  auto loaded = MakeTransform();
  RILL_ASSERT_OK(loaded->LoadState(state));
  RILL_EXPECT_OK(StateOf(*loaded).CheckEqual(state));
  FakeEnvironment a(step_spec(), kLanes, kSeed + 1);
  FakeEnvironment b(step_spec(), kLanes, kSeed + 1);
  ExpectEqual(Train(batch_spec(), 9, a, *saved),
              Train(batch_spec(), 9, b, *loaded));
  RILL_EXPECT_OK(state.CheckEqual(copy)) << "the saved state moved on";
}

TEST_P(TransformConformanceTest, ForeignStateIsRefusedAndChangesNothing) {
  auto transform = MakeTransform();
  FakeEnvironment environment(step_spec(), kLanes, kSeed);
  Train(batch_spec(), 0, environment, *transform);
  const TensorDict before = StateOf(*transform);
  TensorDict foreign;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor number,
                            Tensor::Zeros(DType::kFloat64, {2}));
  RILL_ASSERT_OK(foreign.Set("of/somebody else", number));
  EXPECT_FALSE(transform->LoadState(foreign).ok());
  RILL_EXPECT_OK(StateOf(*transform).CheckEqual(before));
}

TEST_P(TransformConformanceTest, ErrorKeepsTheState) {
  auto transform = MakeTransform();
  FakeEnvironment environment(step_spec(), kLanes, kSeed);
  Train(batch_spec(), 0, environment, *transform);
  const TensorDict before = StateOf(*transform);
  for (auto work :
       {&Transform::Forward, &Transform::Inverse, &Transform::OnStep}) {
    TensorDict nothing({kLanes});
    auto copy = MakeTransform();
    RILL_ASSERT_OK(copy->LoadState(before));
    if ((copy.get()->*work)(&nothing).ok()) continue;
    RILL_EXPECT_OK(StateOf(*copy).CheckEqual(before));
  }
  TensorDict root({kLanes});
  auto copy = MakeTransform();
  RILL_ASSERT_OK(copy->LoadState(before));
  if (!copy->OnReset({1, 0}, &root).ok()) {
    RILL_EXPECT_OK(StateOf(*copy).CheckEqual(before));
  }
}

}  // namespace
}  // namespace rill
