// SPDX-License-Identifier: Apache-2.0
// Record batches that no honest program makes.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "arrow/array/data.h"
#include "arrow/buffer.h"
#include "arrow/extension/fixed_shape_tensor.h"
#include "arrow/record_batch.h"
#include "arrow/type.h"
#include "arrow/util/key_value_metadata.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

using Data = std::shared_ptr<arrow::ArrayData>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

std::shared_ptr<arrow::Buffer> Bytes(std::vector<uint8_t> bytes) {
  return arrow::Buffer::FromVector(std::move(bytes));
}

Data Ints(int64_t length, size_t bytes, int64_t offset = 0) {
  return arrow::ArrayData::Make(
      arrow::int32(), length, {nullptr, Bytes(std::vector<uint8_t>(bytes, 1))},
      /*null_count=*/0, offset);
}

std::shared_ptr<arrow::KeyValueMetadata> MetadataOf(const Metadata& pairs) {
  auto metadata = std::make_shared<arrow::KeyValueMetadata>();
  for (const auto& [name, value] : pairs) metadata->Append(name, value);
  return metadata;
}

absl::StatusOr<TensorDict> ReadColumn(const Data& data,
                                      const Metadata& metadata = {},
                                      int64_t rows = 2) {
  return FromArrow(arrow::RecordBatch::Make(
      arrow::schema(
          {arrow::field("key", data->type, true, MetadataOf(metadata))}),
      rows, std::vector<Data>{data}));
}

void ExpectRefused(const absl::StatusOr<TensorDict>& read,
                   absl::string_view why) {
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kInvalidArgument,
                             HasSubstr(std::string(why))));
}

TEST(HostileBatchTest, LengthsThatBuffersDoNotHave) {
  RILL_EXPECT_OK(ReadColumn(Ints(2, 8)).status());
  ExpectRefused(ReadColumn(Ints(2, 7)), "\"key\": column: ");
  ExpectRefused(ReadColumn(Ints(2, 8, /*offset=*/1)), "\"key\": column: ");
  ExpectRefused(ReadColumn(Ints(2, 8, INT64_MAX - 1)), "\"key\": column: ");
  ExpectRefused(ReadColumn(Ints(-1, 8), {}, -1), "");
  ExpectRefused(ReadColumn(Ints(3, 12)), "got 3 rows, want 2");
  ExpectRefused(
      ReadColumn(arrow::ArrayData::Make(arrow::int32(), 2, {nullptr, nullptr},
                                        /*null_count=*/0)),
      "\"key\": ");
  ExpectRefused(ReadColumn(arrow::ArrayData::Make(arrow::int32(), 2, {nullptr},
                                                  /*null_count=*/0)),
                "\"key\": column: ");
}

TEST(HostileBatchTest, ChildrenThatAreShortOrMissing) {
  const auto lists = [](int64_t rows, Data child, int32_t size) {
    return arrow::ArrayData::Make(arrow::fixed_size_list(child->type, size),
                                  rows, {nullptr}, {child}, /*null_count=*/0);
  };
  RILL_EXPECT_OK(ReadColumn(lists(2, Ints(6, 24), 3)).status());
  ExpectRefused(ReadColumn(lists(2, Ints(5, 24), 3)), "\"key\": ");
  ExpectRefused(ReadColumn(arrow::ArrayData::Make(
                    arrow::fixed_size_list(arrow::int32(), 3), 2, {nullptr},
                    /*null_count=*/0)),
                "\"key\": ");
  ExpectRefused(ReadColumn(arrow::ArrayData::Make(
                    arrow::struct_({arrow::field("a", arrow::int32())}), 2,
                    {nullptr}, {Ints(1, 4)}, /*null_count=*/0)),
                "\"key\": ");
}

TEST(HostileBatchTest, NullValues) {
  const auto data = arrow::ArrayData::Make(
      arrow::int32(), 2, {Bytes({0b01}), Bytes(std::vector<uint8_t>(8, 1))},
      arrow::kUnknownNullCount);
  ExpectRefused(ReadColumn(data), "\"key\": got null values");
  ExpectRefused(ReadColumn(arrow::ArrayData::Make(
                    arrow::struct_({arrow::field("a", arrow::int32())}), 2,
                    {nullptr}, {data}, /*null_count=*/0)),
                "null values");
  ExpectRefused(ReadColumn(arrow::ArrayData::Make(arrow::null(), 2, {nullptr})),
                "null values");
}

TEST(HostileBatchTest, OffsetsOfLists) {
  const auto lists = [](std::vector<int32_t> offsets) {
    return arrow::ArrayData::Make(
        arrow::list(arrow::int32()), 2,
        {nullptr, arrow::Buffer::FromVector(std::move(offsets))}, {Ints(4, 16)},
        /*null_count=*/0);
  };
  RILL_EXPECT_OK(ReadColumn(lists({0, 1, 4})).status());
  ExpectRefused(ReadColumn(lists({0, 1, 5})), "\"key\": ");
  ExpectRefused(ReadColumn(lists({0, 3, 2})), "\"key\": ");
  ExpectRefused(ReadColumn(lists({-1, 0, 2})), "\"key\": ");
  ExpectRefused(ReadColumn(lists({0, INT32_MAX, 2})), "\"key\": ");
  ExpectRefused(ReadColumn(lists({0, 1})), "\"key\": ");
}

TEST(HostileBatchTest, ShapesOfRaggedRows) {
  const auto ragged = [](std::vector<int64_t> sizes) {
    const auto list = arrow::ArrayData::Make(
        arrow::list(arrow::int32()), 2,
        {nullptr, arrow::Buffer::FromVector(std::vector<int32_t>{0, 1, 4})},
        {Ints(4, 16)}, /*null_count=*/0);
    const auto numbers = arrow::ArrayData::Make(
        arrow::int64(), 4,
        {nullptr, arrow::Buffer::FromVector(std::move(sizes))},
        /*null_count=*/0);
    const auto shapes =
        arrow::ArrayData::Make(arrow::fixed_size_list(arrow::int64(), 2), 2,
                               {nullptr}, {numbers}, /*null_count=*/0);
    return arrow::ArrayData::Make(
        arrow::struct_({arrow::field("data", list->type),
                        arrow::field("shape", shapes->type)}),
        2, {nullptr}, {list, shapes}, /*null_count=*/0);
  };
  const Metadata is_ragged = {{"rill.kind", "ragged"}};
  RILL_EXPECT_OK(ReadColumn(ragged({1, 1, 3, 1}), is_ragged).status());
  ExpectRefused(ReadColumn(ragged({1, 1, 3, 2}), is_ragged), "\"key\": ");
  ExpectRefused(ReadColumn(ragged({1, -1, 3, 1}), is_ragged), "\"key\": ");
  ExpectRefused(ReadColumn(ragged({INT64_MAX, 2, 3, 1}), is_ragged),
                "\"key\": ");
  ExpectRefused(
      ReadColumn(Ints(2, 8), {{"rill.kind", "ragged"}, {"rill.dtype", "bool"}}),
      "\"key\": ");
}

TEST(HostileBatchTest, TensorTypesThatDoNotFit) {
  const auto tensor = [](int32_t size, std::vector<int64_t> shape,
                         std::vector<int64_t> permutation) {
    const Data child = Ints(12, 48);
    return arrow::ArrayData::Make(
        std::make_shared<arrow::extension::FixedShapeTensorType>(
            arrow::int32(), size, std::move(shape), std::move(permutation)),
        2, {nullptr}, {child}, /*null_count=*/0);
  };
  RILL_EXPECT_OK(ReadColumn(tensor(6, {2, 3}, {})).status());
  RILL_EXPECT_OK(ReadColumn(tensor(6, {2, 3}, {0, 1})).status());
  ExpectRefused(ReadColumn(tensor(6, {2, 3}, {1, 0})), "row-major");
  ExpectRefused(ReadColumn(tensor(6, {2, 2}, {})), "lists of 6");
  ExpectRefused(ReadColumn(tensor(6, {-2, -3}, {})), "\"key\": ");
  ExpectRefused(ReadColumn(tensor(6, {INT64_MAX, INT64_MAX}, {})), "\"key\": ");
  ExpectRefused(ReadColumn(tensor(7, {7}, {})), "\"key\": ");
}

TEST(HostileBatchTest, TypesAndNamesOfDTypes) {
  ExpectRefused(
      ReadColumn(arrow::ArrayData::Make(
          arrow::date32(), 2, {nullptr, Bytes(std::vector<uint8_t>(8))}, 0)),
      "got date32");
  ExpectRefused(ReadColumn(Ints(2, 8), {{"rill.dtype", "float99"}}), "float99");
  ExpectRefused(ReadColumn(Ints(2, 8), {{"rill.dtype", "bfloat16"}}),
                "int32 for bfloat16");
  ExpectRefused(ReadColumn(arrow::ArrayData::Make(
                               arrow::float32(), 2,
                               {nullptr, Bytes(std::vector<uint8_t>(8))}, 0),
                           {{"rill.dtype", "complex64"}}),
                "\"key\": ");
  const auto bytes = [](uint8_t second) {
    return arrow::ArrayData::Make(arrow::uint8(), 2,
                                  {nullptr, Bytes({0, second})}, 0);
  };
  RILL_EXPECT_OK(ReadColumn(bytes(1), {{"rill.dtype", "bool"}}).status());
  ExpectRefused(ReadColumn(bytes(2), {{"rill.dtype", "bool"}}), "above 1");
}

TEST(HostileBatchTest, TextsThatAreNoUtf8OrDiffer) {
  const auto texts = [](std::vector<uint8_t> bytes) {
    return arrow::ArrayData::Make(
        arrow::utf8(), 2,
        {nullptr, arrow::Buffer::FromVector(std::vector<int32_t>{0, 1, 2}),
         Bytes(std::move(bytes))},
        /*null_count=*/0);
  };
  RILL_EXPECT_OK(ReadColumn(texts({'1', '2'})).status());
  ExpectRefused(ReadColumn(texts({'1', 0xff})), "\"key\": ");
  ExpectRefused(ReadColumn(texts({'1'})), "\"key\": ");
  ExpectRefused(ReadColumn(texts({'1', '2'}), {{"rill.kind", "non_tensor"}}),
                "one value for all rows");
}

TEST(HostileBatchTest, MetadataOfShapesAndNames) {
  const auto batch = [](const Metadata& metadata) {
    return FromArrow(arrow::RecordBatch::Make(
        arrow::schema({arrow::field("key", arrow::int32())},
                      MetadataOf(metadata)),
        2, std::vector<Data>{Ints(2, 8)}));
  };
  RILL_EXPECT_OK(batch({{"rill.batch_shape", "[1,2]"}}).status());
  for (const char* shape :
       {"", "2", "[3]", "[-1,-2]", "[2,\"1\"]", "[1e300]", "[2", "[[2]]",
        "[1,1,1,1,1,1,1,1,2]", "[18446744073709551615]",
        "[9223372036854775807,9223372036854775807]"}) {
    ExpectRefused(batch({{"rill.batch_shape", shape}}), "FromArrow: ");
  }
  for (const char* names : {"", "{}", "[1]", "[\"a\",\"b\"]", "[null]"}) {
    ExpectRefused(
        batch({{"rill.batch_shape", "[2]"}, {"rill.dim_names", names}}),
        "FromArrow: ");
  }
  const auto dict = arrow::ArrayData::Make(
      arrow::struct_({arrow::field("a", arrow::int32())}), 2, {nullptr},
      {Ints(2, 8)}, /*null_count=*/0);
  RILL_EXPECT_OK(ReadColumn(dict).status());
  ExpectRefused(ReadColumn(dict, {{"rill.batch_shape", "[2]"}}), "\"key/a\": ");
  ExpectRefused(ReadColumn(dict, {{"rill.batch_shape", "x"}}), "\"key\": ");
}

TEST(HostileBatchTest, NamesThatAreEmptyOrComeTwice) {
  const auto batch = [](const std::string& a, const std::string& b) {
    return FromArrow(arrow::RecordBatch::Make(
        arrow::schema(
            {arrow::field(a, arrow::int32()), arrow::field(b, arrow::int32())}),
        2, std::vector<Data>{Ints(2, 8), Ints(2, 8)}));
  };
  RILL_EXPECT_OK(batch("a/b", "a").status());
  ExpectRefused(batch("a", "a"), "\"a\": got two columns");
  ExpectRefused(batch("a", ""), "no name of column 1");
  ExpectRefused(batch("a", "\xff"), "no UTF-8");
  ExpectRefused(FromArrow(nullptr), "null");
}

TEST(HostileBatchTest, StructsInOneAnother) {
  Data data = Ints(2, 8);
  for (int i = 0; i < 1000; ++i) {
    data = arrow::ArrayData::Make(
        arrow::struct_({arrow::field("a", data->type)}), 2, {nullptr}, {data},
        /*null_count=*/0);
  }
  ExpectRefused(ReadColumn(data), "at most 64");
}

TEST(HostileBatchTest, UnalignedBytesAreCopied) {
  std::vector<uint8_t> bytes(17);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  const auto whole = Bytes(bytes);
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict dict,
      ReadColumn(arrow::ArrayData::Make(
          arrow::int64(), 2, {nullptr, arrow::SliceBuffer(whole, 1, 16)}, 0)));
  const auto* const read = dict.Find("key")->data<uint8_t>();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(read[i], i + 1);
}

}  // namespace
}  // namespace rill
