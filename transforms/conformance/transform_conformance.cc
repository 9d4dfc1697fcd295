// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/transform_conformance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {

TensorDictSpec TransformConformanceTest::inverse_batch_spec() const {
  if (!under_test_.inverts_results) return batch_spec();
  auto spec = MakeTransform()->ForwardSpec(batch_spec());
  RILL_EXPECT_OK(spec);
  return spec.ok() ? *std::move(spec) : TensorDictSpec();
}

namespace {

constexpr uint64_t kSeed = 5;

TensorDict RandomBatch(const TensorDictSpec& spec, const Shape& shape,
                       uint64_t batch) {
  auto random = spec.Random(shape, Rng(kSeed, RngStream::kUser), batch);
  RILL_EXPECT_OK(random);
  return random.ok() ? *std::move(random) : TensorDict(shape);
}

TensorDict InitialStateOf(const BatchTransform& transform) {
  auto state = transform.InitialState();
  RILL_EXPECT_OK(state);
  return state.ok() ? *std::move(state) : TensorDict();
}

// Some batches, so that there is a state if there can be one. Gives back all
// that came out.
std::vector<TensorDict> Train(const BatchTransform& transform,
                              const TensorDictSpec& spec,
                              const TensorDictSpec& inverse_spec, uint64_t seed,
                              TensorDict* state) {
  std::vector<TensorDict> made;
  for (uint64_t i = 0; i < 4; ++i) {
    TensorDict batch = RandomBatch(spec, {6}, seed + i);
    RILL_EXPECT_OK(transform.Forward(&batch, state));
    made.push_back(std::move(batch));
    batch = RandomBatch(inverse_spec, {6}, seed + i);
    RILL_EXPECT_OK(transform.Inverse(&batch, state));
    made.push_back(std::move(batch));
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

// Keys, dtypes, shapes, and the place where the spec names one.
void ExpectPredicted(const TensorDictSpec& spec, const TensorDict& batch) {
  RILL_EXPECT_OK(spec.CheckLayout("ExpectPredicted", batch));
  if (!spec.device().has_value()) return;
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), *spec.device()) << key;
  });
}

TEST_P(TransformConformanceTest, SpecsPredictWhatForwardAndInverseMake) {
  const auto transform = MakeTransform();
  TensorDict state = InitialStateOf(*transform);
  for (const Shape& shape : shapes()) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec forward,
                              transform->ForwardSpec(batch_spec()));
    TensorDict batch = RandomBatch(batch_spec(), shape, 0);
    RILL_ASSERT_OK(transform->Forward(&batch, &state));
    ExpectPredicted(forward, batch);

    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec inverse,
                              transform->InverseSpec(inverse_batch_spec()));
    batch = RandomBatch(inverse_batch_spec(), shape, 0);
    RILL_ASSERT_OK(transform->Inverse(&batch, &state));
    ExpectPredicted(inverse, batch);
  }
}

TEST_P(TransformConformanceTest, SpecsPredictTheValuesDomains) {
  const auto transform = MakeTransform();
  TensorDict state = InitialStateOf(*transform);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec forward,
                            transform->ForwardSpec(batch_spec()));
  TensorDict batch = RandomBatch(batch_spec(), {64}, 0);
  RILL_ASSERT_OK(transform->Forward(&batch, &state));
  RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(Device::Cpu()));
  RILL_EXPECT_OK(forward.CheckValues("Forward", batch));
}

TEST_P(TransformConformanceTest, InverseLeavesTheCallersBytes) {
  const auto transform = MakeTransform();
  TensorDict state = InitialStateOf(*transform);
  const TensorDict callers = RandomBatch(inverse_batch_spec(), shapes()[1], 0);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, callers.Clone());
  TensorDict batch = callers;
  RILL_ASSERT_OK(transform->Inverse(&batch, &state));
  RILL_EXPECT_OK(callers.CheckEqual(before));
}

TEST_P(TransformConformanceTest, InverseUndoesForward) {
  const std::optional<double> tolerance = under_test().inverse_tolerance;
  if (!tolerance.has_value()) return;
  const auto transform = MakeTransform();
  TensorDict state = InitialStateOf(*transform);
  const TensorDict before = RandomBatch(batch_spec(), {6}, 0);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, before.Clone());
  RILL_ASSERT_OK(transform->Forward(&batch, &state));
  RILL_ASSERT_OK(transform->Inverse(&batch, &state));
  for (const TensorDictSpec::Leaf& leaf : batch_spec().leaves()) {
    const Tensor* const got = batch.Find(leaf.key);
    ASSERT_NE(got, nullptr) << leaf.key;
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor is, Cast(*got, DType::kFloat64));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor was,
                              Cast(*before.Find(leaf.key), DType::kFloat64));
    ASSERT_EQ(got->dtype(), leaf.spec.dtype) << leaf.key;
    ASSERT_EQ(is.shape(), was.shape()) << leaf.key;
    for (int64_t i = 0; i < is.num_elements(); ++i) {
      const double want = was.data<double>()[i];
      EXPECT_NEAR(is.data<double>()[i], want,
                  *tolerance * std::max(1.0, std::abs(want)))
          << leaf.key << ", element " << i;
    }
  }
}

// The same values, of which each leaf's rows lie apart.
TensorDict Apart(const TensorDict& batch) {
  const int64_t rows = batch.batch_shape()[0];
  TensorDict apart({rows});
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    auto roomy = Tensor::Zeros(leaf.dtype(),
                               Shape({rows, 2}).Concat(leaf.shape().Suffix(1)));
    RILL_EXPECT_OK(roomy);
    auto column = roomy->Select(1, 1);
    RILL_EXPECT_OK(column);
    RILL_EXPECT_OK(column->CopyFrom(leaf));
    RILL_EXPECT_OK(apart.Set(key, *std::move(column)));
  });
  return apart;
}

TEST_P(TransformConformanceTest, RowsMayLieAtAnyDistance) {
  const auto transform = MakeTransform();
  for (auto work : {&BatchTransform::Forward, &BatchTransform::Inverse}) {
    const bool is_forward = work == &BatchTransform::Forward;
    TensorDict batch =
        RandomBatch(is_forward ? batch_spec() : inverse_batch_spec(), {6}, 0);
    TensorDict apart = Apart(batch);
    TensorDict state = InitialStateOf(*transform);
    TensorDict state_apart = InitialStateOf(*transform);
    RILL_ASSERT_OK(((*transform).*work)(&batch, &state));
    RILL_ASSERT_OK(((*transform).*work)(&apart, &state_apart));
    RILL_EXPECT_OK(apart.CheckEqual(batch))
        << (is_forward ? "Forward" : "Inverse");
    RILL_EXPECT_OK(state_apart.CheckEqual(state));
  }
}

// The parts of a batch beside its leaves, and entries that no option names.
TEST_P(TransformConformanceTest, KeepsNamesOfDimensionsAndNonTensorValues) {
  if (!under_test().keeps_other_leaves) return;
  const auto transform = MakeTransform();
  TensorDict state = InitialStateOf(*transform);
  for (auto work : {&BatchTransform::Forward, &BatchTransform::Inverse}) {
    const bool is_forward = work == &BatchTransform::Forward;
    TensorDict batch =
        RandomBatch(is_forward ? batch_spec() : inverse_batch_spec(), {6}, 0);
    RILL_ASSERT_OK(batch.SetDimNames({"time"}));
    RILL_ASSERT_OK(batch.Set("note of the test", NonTensor{"\"nobody's\""}));
    RILL_ASSERT_OK(((*transform).*work)(&batch, &state));
    RILL_EXPECT_OK(batch.GetNonTensor("note of the test"));
    if (batch.batch_shape().rank() == 1) {
      EXPECT_EQ(batch.dim_names(), std::vector<std::string>({"time"}));
    }
  }
}

// --- Batches that do not fit -------------------------------------------------

// A batch that differs from the wanted ones in one thing, and its spec.
struct Misfit {
  std::string text;
  std::optional<TensorDictSpec> spec;  // None where no spec can say it.
  TensorDict batch;
};

std::vector<Misfit> Misfits(const TensorDictSpec& spec, const Shape& shape) {
  std::vector<Misfit> all;
  const auto add = [&](std::string text, const TensorDictSpec& wrong) {
    all.push_back({std::move(text), wrong, RandomBatch(wrong, shape, 0)});
  };
  for (const auto& [key, leaf] : spec.leaves()) {
    TensorDictSpec wrong = spec;
    wrong.Erase(key);
    add(key + " is missing", wrong);
    const DType dtype =
        leaf.dtype == DType::kInt16 ? DType::kUInt8 : DType::kInt16;
    RILL_EXPECT_OK(wrong.Set(key, LeafSpec::Unbounded(dtype, leaf.shape)));
    add(key + " has another dtype", wrong);
    RILL_EXPECT_OK(wrong.Set(
        key, LeafSpec::Unbounded(leaf.dtype, leaf.shape.Concat({2, 3}))));
    add(key + " has another shape", wrong);
    wrong = spec;
    wrong.Erase(key);
    RILL_EXPECT_OK(wrong.Set(key + "/leaf", leaf));
    add(key + " is a dictionary", wrong);
    TensorDict batch = RandomBatch(spec, shape, 0);
    absl::StatusOr<Tensor> there = batch.Find(key)->To(Device::Fake(0));
    RILL_EXPECT_OK(there);
    RILL_EXPECT_OK(batch.Set(key, *there));
    all.push_back({key + " is on a device", std::nullopt, std::move(batch)});
  }
  TensorDictSpec there = spec;
  there.set_device(Device::Fake(0));
  all.push_back({"all is on a device", there,
                 *RandomBatch(spec, shape, 0).To(Device::Fake(0))});
  return all;
}

TEST_P(TransformConformanceTest, BatchesThatDoNotFitStayAsTheyAre) {
  const auto transform = MakeTransform();
  for (const bool is_forward : {true, false}) {
    const TensorDictSpec fits =
        is_forward ? batch_spec() : inverse_batch_spec();
    for (Misfit& misfit : Misfits(fits, shapes()[1])) {
      SCOPED_TRACE(
          absl::StrCat(is_forward ? "Forward: " : "Inverse: ", misfit.text));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, misfit.batch.Clone());
      TensorDict state = InitialStateOf(*transform);
      const TensorDict initial = state;
      const absl::Status status =
          is_forward ? transform->Forward(&misfit.batch, &state)
                     : transform->Inverse(&misfit.batch, &state);
      // A chain that cannot work fails when it is built, and no other does.
      if (misfit.spec.has_value()) {
        const auto after = is_forward ? transform->ForwardSpec(*misfit.spec)
                                      : transform->InverseSpec(*misfit.spec);
        EXPECT_EQ(after.ok(), status.ok())
            << "spec: " << after.status() << "\nbatch: " << status;
      }
      // The batch lives until its stream got there.
      RILL_ASSERT_OK(Stream::Default(Device::Fake(0))->Synchronize());
      if (status.ok()) continue;
      RILL_EXPECT_OK(misfit.batch.CheckEqual(before)) << status;
      RILL_EXPECT_OK(state.CheckEqual(initial)) << status;
      EXPECT_THAT(status.message(),
                  ::testing::HasSubstr(std::string(transform->name())));
    }
  }
}

// --- State -------------------------------------------------------------------

TEST_P(TransformConformanceTest, EqualTransformsMakeEqualThings) {
  const auto a = MakeTransform();
  const auto b = MakeTransform();
  EXPECT_FALSE(a->name().empty());
  EXPECT_EQ(a->name(), b->name());
  TensorDict state_a = InitialStateOf(*a);
  TensorDict state_b = InitialStateOf(*b);
  ExpectEqual(Train(*a, batch_spec(), inverse_batch_spec(), 0, &state_a),
              Train(*b, batch_spec(), inverse_batch_spec(), 0, &state_b));
  RILL_EXPECT_OK(state_a.CheckEqual(state_b));
}

TEST_P(TransformConformanceTest, OnlyStatefulTransformsHaveAState) {
  const auto transform = MakeTransform();
  if (transform->is_stateful()) return;
  TensorDict state = InitialStateOf(*transform);
  EXPECT_TRUE(state.empty());
  Train(*transform, batch_spec(), inverse_batch_spec(), 0, &state);
  EXPECT_TRUE(state.empty());
}

TEST_P(TransformConformanceTest, StatesKeepTheirLayout) {
  const auto transform = MakeTransform();
  TensorDict state = InitialStateOf(*transform);
  Train(*transform, batch_spec(), inverse_batch_spec(), 0, &state);
  RILL_EXPECT_OK(CheckTransformState(transform->name(),
                                     InitialStateOf(*transform), state));
}

// The owner keeps the old state by keeping its tensors.
TEST_P(TransformConformanceTest, OldStatesStayAsTheyWere) {
  const auto transform = MakeTransform();
  TensorDict state = InitialStateOf(*transform);
  Train(*transform, batch_spec(), inverse_batch_spec(), 0, &state);
  const TensorDict old = state;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, old.Clone());
  TensorDict a = old;
  const std::vector<TensorDict> first =
      Train(*transform, batch_spec(), inverse_batch_spec(), 9, &a);
  RILL_EXPECT_OK(old.CheckEqual(copy));
  TensorDict b = old;
  ExpectEqual(Train(*transform, batch_spec(), inverse_batch_spec(), 9, &b),
              first);
}

TEST_P(TransformConformanceTest, ForeignStatesAreRefused) {
  const auto transform = MakeTransform();
  TensorDict foreign;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor number,
                            Tensor::Zeros(DType::kFloat64, {2}));
  RILL_ASSERT_OK(foreign.Set("of/somebody else", number));
  EXPECT_THAT(CheckTransformState(transform->name(), InitialStateOf(*transform),
                                  foreign),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       ::testing::HasSubstr(std::string(transform->name()))));
}

// --- Threads -----------------------------------------------------------------

TEST_P(TransformConformanceTest, RunsInSeveralThreadsAtOnceWithoutAState) {
  const auto transform = MakeTransform();
  if (transform->is_stateful()) return;
  constexpr int kThreads = 8;
  std::array<std::vector<TensorDict>, kThreads> made;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      RILL_EXPECT_OK(CatchExceptions(
          [&] {
            TensorDict state;
            made[static_cast<size_t>(i)] = Train(
                *transform, batch_spec(), inverse_batch_spec(), 3, &state);
            return absl::OkStatus();
          },
          transform->name()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : made) ExpectEqual(made[0], each);
}

}  // namespace
}  // namespace rill
