// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/structure/flatten_tensor_dict.h"
#include "rill/transforms/structure/remove_empty_specs.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// --- FlattenTensorDict -------------------------------------------------------

TEST(FlattenTensorDictTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto flatten, FlattenTensorDict::Create({}));
  EXPECT_EQ(flatten->name(), "FlattenTensorDict");
}

TEST(FlattenTensorDictTest, DimensionsOfTheBatchBecomeOneOnOneSide) {
  for (const bool inverse : {true, false}) {
    auto flatten = *FlattenTensorDict::Create({.inverse = inverse});
    for (const Shape& shape :
         {Shape({2, 3}), Shape({4}), Shape({}), Shape({2, 0, 5})}) {
      const TensorDict before =
          *TedSpec().Random(shape, Rng(1, RngStream::kUser), 0);
      TensorDict batch = before;
      RILL_ASSERT_OK(inverse ? flatten->Forward(&batch, nullptr)
                             : flatten->Inverse(&batch, nullptr));
      RILL_EXPECT_OK(batch.CheckEqual(before));
      RILL_ASSERT_OK(inverse ? flatten->Inverse(&batch, nullptr)
                             : flatten->Forward(&batch, nullptr));
      RILL_EXPECT_OK(batch.CheckEqual(*before.Reshape({shape.num_elements()})));
      EXPECT_EQ(batch.batch_shape().rank(), 1);
      EXPECT_EQ(batch.Find("observation")->raw_data(),
                before.Find("observation")->raw_data());
    }
  }
}

TEST(FlattenTensorDictTest, ValuesThatAreNoTensorsStay) {
  auto flatten = *FlattenTensorDict::Create({});
  TensorDict batch({2, 3});
  RILL_ASSERT_OK(batch.Set("note", NonTensor{"1"}));
  RILL_ASSERT_OK(flatten->Inverse(&batch, nullptr));
  EXPECT_EQ(batch.batch_shape(), Shape({6}));
  EXPECT_THAT(batch.GetNonTensor("note"), IsOkAndHolds(NonTensor{"1"}));
}

// --- RemoveEmptySpecs --------------------------------------------------------

TEST(RemoveEmptySpecsTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto remove, RemoveEmptySpecs::Create());
  EXPECT_EQ(remove->name(), "RemoveEmptySpecs");
}

TEST(RemoveEmptySpecsTest, DictionariesWithoutEntriesGoAtEveryDepth) {
  TensorDict batch({1});
  const TensorDict nothing({1});
  RILL_ASSERT_OK(batch.Set("a/b/c", nothing));
  RILL_ASSERT_OK(batch.Set("next/info", nothing));
  RILL_ASSERT_OK(batch.Set("next/other/info", nothing));
  RILL_ASSERT_OK(batch.Set("next/reward", *Tensor::Zeros(DType::kBool, {1})));
  RILL_ASSERT_OK(batch.Set("odd\\/name", nothing));
  RILL_ASSERT_OK(batch.Set("notes/text", NonTensor{"1"}));
  RILL_ASSERT_OK((*RemoveEmptySpecs::Create())->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Keys(), ElementsAre("next", "notes"));
  EXPECT_THAT(batch.GetDict("next")->Keys(), ElementsAre("reward"));
  EXPECT_TRUE(batch.Contains("notes/text"));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Flatten,
                                  InABuffer<FlattenTensorDict>({}, TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    FlattenAfterReads,
    InABuffer<FlattenTensorDict>({.inverse = false}, TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    RemoveEmptySpecs, {.make = [] { return *RemoveEmptySpecs::Create(); },
                       .batch_spec = TedSpec()});

}  // namespace rill
