// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/arrow/arrow_batch.h"

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "arrow/array/array_nested.h"
#include "arrow/array/array_primitive.h"
#include "arrow/array/builder_binary.h"
#include "arrow/extension/fixed_shape_tensor.h"
#include "arrow/record_batch.h"
#include "arrow/tensor.h"
#include "arrow/type.h"
#include "arrow/util/key_value_metadata.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Bytes 0, 1, 2, ...; 0 and 1 for bools.
Tensor Counting(DType dtype, const Shape& shape) {
  Tensor tensor = *Tensor::Empty(dtype, shape);
  for (int64_t i = 0; i < tensor.size_bytes(); ++i) {
    tensor.data<uint8_t>()[i] =
        static_cast<uint8_t>(dtype == DType::kBool ? i % 3 % 2 : i);
  }
  return tensor;
}

TensorDict DictOf(const Shape& batch_shape, absl::string_view key,
                  const Tensor& tensor) {
  TensorDict dict(batch_shape);
  RILL_EXPECT_OK(dict.Set(key, tensor));
  return dict;
}

// Through a batch, which is valid.
absl::StatusOr<TensorDict> ThereAndBack(const TensorDict& dict) {
  auto batch = ToArrow(dict);
  if (!batch.ok()) return batch.status();
  EXPECT_EQ((*batch)->ValidateFull().ToString(), "OK");
  return FromArrow(*batch);
}

TEST(ArrowBatchTest, Example) {
  TensorDict steps({2});
  RILL_ASSERT_OK(steps.Set("next/reward", Counting(DType::kFloat32, {2, 1})));
  RILL_ASSERT_OK_AND_ASSIGN(auto batch, ToArrow(steps));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict same, FromArrow(batch));
  RILL_EXPECT_OK(same.CheckEqual(steps));
}

TEST(ArrowBatchTest, EveryDTypeComesBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& inner : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0}}) {
      for (const Shape& batch : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0}}) {
        const Tensor leaf = Counting(dtype, batch.Concat(inner));
        const TensorDict dict = DictOf(batch, "leaf", leaf);
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, ThereAndBack(dict));
        RILL_EXPECT_OK(same.CheckEqual(dict)) << leaf.DebugString();
      }
    }
  }
}

TEST(ArrowBatchTest, KeysOrderShapesAndNamesComeBack) {
  TensorDict dict({2, 3});
  RILL_ASSERT_OK(dict.SetDimNames({"lanes", "time"}));
  RILL_ASSERT_OK(dict.Set("z", Counting(DType::kInt64, {2, 3})));
  RILL_ASSERT_OK(dict.Set("a\\/b/c", Counting(DType::kBool, {2, 3, 1})));
  TensorDict agents({2, 3, 4});
  RILL_ASSERT_OK(agents.SetDimNames({"lanes", "time", "agents"}));
  RILL_ASSERT_OK(agents.Set("obs", Counting(DType::kUInt8, {2, 3, 4, 5})));
  RILL_ASSERT_OK(agents.Set("done", Counting(DType::kBool, {2, 3, 4})));
  RILL_ASSERT_OK(dict.Set("agents", agents));
  RILL_ASSERT_OK(dict.Set("none", TensorDict({2, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, ThereAndBack(dict));
  RILL_EXPECT_OK(same.CheckEqual(dict));
  EXPECT_EQ(same.Keys(), dict.Keys());
  EXPECT_EQ(same.dim_names(), dict.dim_names());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict inner, same.GetDict("agents"));
  EXPECT_EQ(inner.batch_shape(), Shape({2, 3, 4}));
  EXPECT_EQ(inner.dim_names(), agents.dim_names());
}

TEST(ArrowBatchTest, BatchesWithoutColumnsKeepTheirShape) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{2, 0, 3}}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same,
                              ThereAndBack(TensorDict(shape)));
    EXPECT_EQ(same.batch_shape(), shape);
    EXPECT_TRUE(same.empty());
  }
}

TEST(ArrowBatchTest, SchemasWithoutBatchShapeAreEqual) {
  const ToArrowOptions options = {.writes_batch_shape = false};
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto two,
      ToArrow(DictOf({2}, "x", Counting(DType::kInt8, {2, 3})), options));
  const TensorDict dict =
      DictOf({2, 2}, "x", Counting(DType::kInt8, {2, 2, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto four, ToArrow(dict, options));
  EXPECT_TRUE(two->schema()->Equals(*four->schema(), /*check_metadata=*/true));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict same, FromArrow(four));
  EXPECT_EQ(same.batch_shape(), Shape({4}));
  RILL_ASSERT_OK_AND_ASSIGN(same,
                            FromArrow(four, {.batch_shape = Shape({2, 2})}));
  RILL_EXPECT_OK(same.CheckEqual(dict));
  EXPECT_THAT(
      FromArrow(four, {.batch_shape = Shape({3})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 rows")));
}

TEST(ArrowBatchTest, BytesAreShared) {
  for (const DType dtype :
       {DType::kFloat32, DType::kBFloat16, DType::kBool, DType::kComplex128}) {
    const Tensor leaf = Counting(dtype, {4, 3});
    RILL_ASSERT_OK_AND_ASSIGN(const auto batch,
                              ToArrow(DictOf({4}, "a/b", leaf)));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, FromArrow(batch));
    EXPECT_EQ(same.Find("a/b")->raw_data(), leaf.raw_data()) << dtype;
    EXPECT_FALSE(same.Find("a/b")->is_writable());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict own,
                              FromArrow(batch, {.is_writable = true}));
    EXPECT_TRUE(own.Find("a/b")->is_writable());
  }
}

TEST(ArrowBatchTest, SlicesOfBatchesAreViews) {
  TensorDict dict({6});
  RILL_ASSERT_OK(dict.Set("flat", Counting(DType::kInt32, {6})));
  RILL_ASSERT_OK(dict.Set("bits", Counting(DType::kBool, {6})));
  RILL_ASSERT_OK(dict.Set("in/deep", Counting(DType::kInt16, {6, 2, 2})));
  const std::vector<std::string> texts = {"0", "1", "2", "3", "4", "5"};
  RILL_ASSERT_OK(dict.Set("text", *NonTensorStack::Create({6}, texts)));
  RILL_ASSERT_OK_AND_ASSIGN(
      const RaggedTensor ragged,
      RaggedTensor::Create(Counting(DType::kUInt8, {9}),
                           *Tensor::From<int64_t>({2, 0, 3, 1, 2, 1}, {6, 1})));
  RILL_ASSERT_OK(dict.Set("ragged", ragged));
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch,
                            ToArrow(dict, {.writes_batch_shape = false}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part,
                            FromArrow(batch->Slice(2, 3)));
  for (const char* key : {"flat", "bits", "in/deep"}) {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor want,
                              dict.Find(key)->Slice(0, 2, 5));
    RILL_ASSERT_OK_AND_ASSIGN(const bool is_same,
                              part.Find(key)->BitEquals(want));
    EXPECT_TRUE(is_same) << key;
  }
  EXPECT_EQ(part.Find("flat")->raw_data(),
            dict.Find("flat")->raw_data() + 2 * 4);
  RILL_ASSERT_OK_AND_ASSIGN(const NonTensorStack text,
                            part.GetNonTensorStack("text"));
  EXPECT_THAT(text.values(), ElementsAre("2", "3", "4"));
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor rows, part.GetRagged("ragged"));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor row, rows.Row(0));
  EXPECT_THAT(row, TensorElementsAre<uint8_t>(2, 3, 4));
}

TEST(ArrowBatchTest, LeavesWithGapsAreCopied) {
  const Tensor whole = Counting(DType::kInt64, {4, 6});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor part, whole.Slice(1, 1, 3));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor expanded,
                            Counting(DType::kInt16, {1, 2}).Expand({4, 2}));
  TensorDict dict = DictOf({4}, "part", part);
  RILL_ASSERT_OK(dict.Set("expanded", expanded));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, ThereAndBack(dict));
  RILL_EXPECT_OK(same.CheckEqual(dict));
}

TEST(ArrowBatchTest, EitherSideMayGoFirst) {
  std::shared_ptr<arrow::RecordBatch> batch;
  {
    const TensorDict dict =
        DictOf({1 << 16}, "x", Counting(DType::kInt64, {1 << 16}));
    RILL_ASSERT_OK_AND_ASSIGN(batch, ToArrow(dict));
  }
  EXPECT_EQ(batch->ValidateFull().ToString(), "OK");
  const auto& column = static_cast<const arrow::Int64Array&>(*batch->column(0));
  EXPECT_EQ(column.Value(32) & 0xff, 0);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, FromArrow(batch));
  batch = nullptr;
  EXPECT_EQ(dict.Find("x")->data<uint8_t>()[77], 77);
}

TEST(ArrowBatchTest, ValuesThatAreNoTensorsComeBack) {
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("one", NonTensor{"{\"a\": [1, null]}"}));
  const std::vector<std::string> texts = {"\"l\xc3\xa4ngs\"", "3"};
  RILL_ASSERT_OK(dict.Set("in/many", *NonTensorStack::Create({2}, texts)));
  for (const DType dtype : {DType::kFloat32, DType::kBool, DType::kBFloat16}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const RaggedTensor ragged,
        RaggedTensor::Create(Counting(dtype, {5}),
                             *Tensor::From<int64_t>({2, 3}, {2, 1})));
    RILL_ASSERT_OK(dict.Set(absl::StrCat("ragged/", DTypeName(dtype)), ragged));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const RaggedTensor images,
      RaggedTensor::Create(Counting(DType::kUInt8, {10}),
                           *Tensor::From<int64_t>({2, 3, 4, 1}, {2, 2})));
  RILL_ASSERT_OK(dict.Set("images", images));
  RILL_ASSERT_OK_AND_ASSIGN(
      const RaggedTensor scalars,
      RaggedTensor::Create(Counting(DType::kUInt8, {2}),
                           *Tensor::Empty(DType::kInt64, {2, 0})));
  RILL_ASSERT_OK(dict.Set("scalars", scalars));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, ThereAndBack(dict));
  RILL_EXPECT_OK(same.CheckEqual(dict));
  EXPECT_EQ(same.Kind("one"), EntryKind::kNonTensor);
}

TEST(ArrowBatchTest, NoRowsOfWhatIsNoTensorComeBack) {
  TensorDict dict({0});
  RILL_ASSERT_OK(dict.Set("many", *NonTensorStack::Create({0}, {})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const RaggedTensor ragged,
      RaggedTensor::Create(*Tensor::Empty(DType::kFloat32, {0}),
                           *Tensor::Empty(DType::kInt64, {0, 1})));
  RILL_ASSERT_OK(dict.Set("ragged", ragged));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, ThereAndBack(dict));
  RILL_EXPECT_OK(same.CheckEqual(dict));
}

TEST(ArrowBatchTest, PlainArrowProgramsSeeTensorsAndBools) {
  TensorDict dict({3});
  RILL_ASSERT_OK(dict.Set("x", Counting(DType::kFloat32, {3, 2, 4})));
  RILL_ASSERT_OK(dict.Set("flag", Counting(DType::kBool, {3})));
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch, ToArrow(dict));
  EXPECT_EQ(batch->schema()->metadata()->Get("rill.batch_shape").ValueOr(""),
            "[3]");
  const auto& tensors =
      dynamic_cast<const arrow::extension::FixedShapeTensorArray&>(
          *batch->GetColumnByName("x"));
  const auto tensor = tensors.ToTensor();
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  EXPECT_THAT((*tensor)->shape(), ElementsAre(3, 2, 4));
  EXPECT_EQ((*tensor)->raw_data(), dict.Find("x")->data<uint8_t>());
  const auto& flags =
      dynamic_cast<const arrow::BooleanArray&>(*batch->GetColumnByName("flag"));
  EXPECT_FALSE(flags.Value(0));
  EXPECT_TRUE(flags.Value(1));
}

TEST(ArrowBatchTest, PlainArrowColumnsAreRead) {
  // Lists of fixed size without the extension, texts without metadata.
  auto numbers = std::make_shared<arrow::Int32Array>(
      6, arrow::Buffer::FromVector(std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  auto pairs = arrow::FixedSizeListArray::FromArrays(numbers, 3).ValueOrDie();
  arrow::StringBuilder builder;
  ASSERT_TRUE(builder.AppendValues({"say \"hi\"", "b"}).ok());
  auto texts = builder.Finish().ValueOrDie();
  const auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("pairs", pairs->type()),
                     arrow::field("texts", texts->type())}),
      2, std::vector<std::shared_ptr<arrow::Array>>{pairs, texts});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, FromArrow(batch));
  EXPECT_EQ(dict.Find("pairs")->shape(), Shape({2, 3}));
  EXPECT_THAT(*dict.Find("pairs"),
              TensorElementsAre<int32_t>(1, 2, 3, 4, 5, 6));
  RILL_ASSERT_OK_AND_ASSIGN(const NonTensorStack json,
                            dict.GetNonTensorStack("texts"));
  EXPECT_THAT(json.values(), ElementsAre("\"say \\\"hi\\\"\"", "\"b\""));
}

TEST(ArrowBatchTest, WhatHasNoColumnIsNamed) {
  const TensorDict member;
  TensorDict stack({2});
  RILL_ASSERT_OK(stack.Set("in/lazy", *LazyStack::Create({member, member})));
  EXPECT_THAT(ToArrow(stack), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("\"in/lazy\": got a lazy")));
  EXPECT_THAT(ToArrow(DictOf({1}, "a\xff", Counting(DType::kInt8, {1}))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-8")));
  TensorDict text({1});
  RILL_ASSERT_OK(text.Set("text", NonTensor{"\"\xff\""}));
  EXPECT_THAT(ToArrow(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("\"text\": got text")));
  TensorDict inner({2, 3});
  RILL_ASSERT_OK(inner.Set("many", *NonTensorStack::Filled({2, 3}, {"1"})));
  TensorDict outer({2});
  RILL_ASSERT_OK(outer.Set("in", inner));
  EXPECT_THAT(ToArrow(outer), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("\"in/many\"")));
}

}  // namespace
}  // namespace rill
