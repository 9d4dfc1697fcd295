// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/arrow/arrow_c_data.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "arrow/c/abi.h"
#include "arrow/c/bridge.h"
#include "arrow/record_batch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

// Over memory that somebody else keeps for as long as `owner` lives.
Tensor TensorOver(std::shared_ptr<std::array<float, 6>> owner) {
  auto tensor = Tensor::View(
      Buffer::Wrap(owner->data(), sizeof(*owner), Device::Cpu(),
                   MemoryKind::kPageable, owner, /*is_writable=*/true),
      DType::kFloat32, {2, 3}, 0);
  RILL_EXPECT_OK(tensor.status());
  return *std::move(tensor);
}

TensorDict DictOf(const Tensor& tensor) {
  TensorDict dict({2});
  RILL_EXPECT_OK(dict.Set("a/b", tensor));
  return dict;
}

TEST(ArrowCDataTest, Example) {
  const auto run = [](const TensorDict& steps) -> absl::StatusOr<TensorDict> {
    ArrowSchema schema;
    ArrowArray array;
    RILL_RETURN_IF_ERROR(ExportToC(steps, &schema, &array));
    return ImportFromC(&schema, &array);
  };
  TensorDict steps({2, 3});
  RILL_ASSERT_OK(steps.SetDimNames({"lanes", "time"}));
  RILL_ASSERT_OK(steps.Set("x", *Tensor::Zeros(DType::kBFloat16, {2, 3, 4})));
  RILL_ASSERT_OK(steps.Set("next/done", *Tensor::Zeros(DType::kBool, {2, 3})));
  RILL_ASSERT_OK(steps.Set("text", NonTensor{"{\"a\":1}"}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, run(steps));
  RILL_EXPECT_OK(same.CheckEqual(steps));
  EXPECT_EQ(same.dim_names(), steps.dim_names());
}

TEST(ArrowCDataTest, BytesAreShared) {
  const auto memory = std::make_shared<std::array<float, 6>>();
  ArrowSchema schema;
  ArrowArray array;
  RILL_ASSERT_OK(ExportToC(DictOf(TensorOver(memory)), &schema, &array));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same,
                            ImportFromC(&schema, &array));
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(same.Find("a/b")->data<float>(), memory->data());
  EXPECT_FALSE(same.Find("a/b")->is_writable());
}

TEST(ArrowCDataTest, TheExporterMayEndFirst) {
  auto memory = std::make_shared<std::array<float, 6>>();
  (*memory)[5] = 7;
  const std::weak_ptr<std::array<float, 6>> lives = memory;
  ArrowSchema schema;
  ArrowArray array;
  {
    TensorDict dict = DictOf(TensorOver(std::move(memory)));
    RILL_ASSERT_OK(ExportToC(dict, &schema, &array));
  }
  EXPECT_FALSE(lives.expired());
  std::optional<TensorDict> imported;
  RILL_ASSERT_OK_AND_ASSIGN(imported, ImportFromC(&schema, &array));
  Tensor leaf = *imported->Find("a/b");
  imported.reset();
  EXPECT_EQ(leaf.data<float>()[5], 7);
  EXPECT_FALSE(lives.expired());
  leaf = Tensor();
  EXPECT_TRUE(lives.expired());
}

TEST(ArrowCDataTest, TheImporterMayEndFirst) {
  auto memory = std::make_shared<std::array<float, 6>>();
  (*memory)[5] = 7;
  const std::weak_ptr<std::array<float, 6>> lives = memory;
  std::optional<TensorDict> dict = DictOf(TensorOver(std::move(memory)));
  ArrowSchema schema;
  ArrowArray array;
  RILL_ASSERT_OK(ExportToC(*dict, &schema, &array));
  schema.release(&schema);
  array.release(&array);
  EXPECT_EQ(dict->Find("a/b")->data<float>()[5], 7);
  dict.reset();
  EXPECT_TRUE(lives.expired());
}

TEST(ArrowCDataTest, WhatCannotBeExportedLeavesReleasedStructs) {
  TensorDict dict({1});
  RILL_ASSERT_OK(dict.Set("a\xff", *Tensor::Zeros(DType::kInt8, {1})));
  ArrowSchema schema;
  ArrowArray array;
  EXPECT_THAT(ExportToC(dict, &schema, &array),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-8")));
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_EQ(array.release, nullptr);
}

TEST(ArrowCDataTest, OfAnotherLibraryEachStructIsReleasedOnce) {
  // Through Arrow's own exporter, as another library would do it.
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto batch,
      ToArrow(DictOf(TensorOver(std::make_shared<std::array<float, 6>>()))));
  ArrowSchema schema;
  ArrowArray array;
  ASSERT_TRUE(arrow::ExportRecordBatch(*batch, &array, &schema).ok());
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict dict,
      ImportFromC(&schema, &array, {.is_writable = true}));
  EXPECT_TRUE(dict.Find("a/b")->is_writable());
  EXPECT_THAT(ImportFromC(&schema, &array),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("null, released or without a format")));
}

// A struct of one column of two int32, whose parts count how often they are
// released.
class OwnStructs {
 public:
  OwnStructs() {
    for (ArrowSchema& schema : schemas_) {
      schema.name = "x";
      schema.format = &schema == schemas_ ? "+s" : "i";
      schema.release = &ReleaseSchema;
      schema.private_data = this;
    }
    schemas_[0].n_children = 1;
    schemas_[0].children = schema_children_;
    for (ArrowArray& array : arrays_) {
      array.length = 2;
      array.n_buffers = &array == arrays_ ? 1 : 2;
      array.buffers = buffers_;
      array.release = &ReleaseArray;
      array.private_data = this;
    }
    arrays_[0].n_children = 1;
    arrays_[0].children = array_children_;
  }
  absl::StatusOr<TensorDict> Import() {
    return ImportFromC(&schemas_[0], &arrays_[0]);
  }
  ArrowSchema& schema() { return schemas_[0]; }
  ArrowSchema& column_schema() { return schemas_[1]; }
  ArrowArray& array() { return arrays_[0]; }
  ArrowArray& column() { return arrays_[1]; }
  const void** buffers() { return buffers_; }
  // How often the outer ones were: {schema, array}.
  std::pair<int, int> released() const { return released_; }

 private:
  static void ReleaseSchema(ArrowSchema* schema) {
    ++static_cast<OwnStructs*>(schema->private_data)->released_.first;
    schema->release = nullptr;
  }
  static void ReleaseArray(ArrowArray* array) {
    ++static_cast<OwnStructs*>(array->private_data)->released_.second;
    array->release = nullptr;
  }

  int32_t values_[2] = {4, 5};
  const void* buffers_[2] = {nullptr, values_};
  ArrowSchema schemas_[2] = {};
  ArrowArray arrays_[2] = {};
  ArrowSchema* schema_children_[1] = {&schemas_[1]};
  ArrowArray* array_children_[1] = {&arrays_[1]};
  std::pair<int, int> released_ = {0, 0};
};

TEST(ArrowCDataTest, HandMadeStructsAreRead) {
  OwnStructs structs;
  {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, structs.Import());
    EXPECT_EQ(dict.Find("x")->data<int32_t>()[1], 5);
    EXPECT_EQ(structs.released(), std::pair(1, 0));
  }
  EXPECT_EQ(structs.released(), std::pair(1, 1));
}

TEST(ArrowCDataTest, BadStructsAreErrorsAndReleased) {
  using Break = std::function<void(OwnStructs&)>;
  const std::vector<Break> breaks = {
      [](OwnStructs& all) { all.schema().format = nullptr; },
      [](OwnStructs& all) { all.schema().format = ""; },
      [](OwnStructs& all) { all.schema().format = "i"; },
      [](OwnStructs& all) { all.schema().n_children = -1; },
      [](OwnStructs& all) { all.schema().n_children = 0; },
      [](OwnStructs& all) { all.schema().children = nullptr; },
      [](OwnStructs& all) { all.schema().children[0] = nullptr; },
      [](OwnStructs& all) { all.schema().children[0] = &all.schema(); },
      [](OwnStructs& all) { all.column_schema().format = "no type"; },
      [](OwnStructs& all) { all.column_schema().format = "w:-4"; },
      [](OwnStructs& all) { all.column_schema().release = nullptr; },
      [](OwnStructs& all) { all.array().length = -1; },
      [](OwnStructs& all) { all.array().length = 3; },
      [](OwnStructs& all) { all.array().n_children = 0; },
      [](OwnStructs& all) { all.array().n_children = -1; },
      [](OwnStructs& all) { all.array().children = nullptr; },
      [](OwnStructs& all) { all.array().children[0] = nullptr; },
      [](OwnStructs& all) { all.array().children[0] = &all.array(); },
      [](OwnStructs& all) { all.array().n_buffers = -1; },
      [](OwnStructs& all) { all.array().buffers = nullptr; },
      [](OwnStructs& all) { all.column().n_buffers = 1; },
      [](OwnStructs& all) { all.column().buffers = nullptr; },
      [](OwnStructs& all) { all.column().length = 1; },
      [](OwnStructs& all) { all.column().length = INT64_MAX; },
      [](OwnStructs& all) { all.column().offset = -1; },
      [](OwnStructs& all) { all.column().offset = INT64_MAX; },
      [](OwnStructs& all) { all.column().release = nullptr; },
      [](OwnStructs& all) { all.buffers()[1] = nullptr; },
      // A text without its offsets, of which the last one is far away.
      [](OwnStructs& all) {
        all.column_schema().format = "u";
        all.column().length = 1 << 30;
        all.array().length = 1 << 30;
        all.buffers()[1] = nullptr;
      },
      [](OwnStructs& all) { all.column_schema().format = "vu"; },
  };
  for (size_t i = 0; i < breaks.size(); ++i) {
    OwnStructs structs;
    breaks[i](structs);
    EXPECT_THAT(structs.Import(), StatusIs(absl::StatusCode::kInvalidArgument))
        << i;
    EXPECT_EQ(structs.released(), std::pair(1, 1)) << i;
  }
  // One of the two is missing.
  OwnStructs structs;
  EXPECT_THAT(ImportFromC(nullptr, &structs.array()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ImportFromC(&structs.schema(), nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(structs.released(), std::pair(1, 1));
}

}  // namespace
}  // namespace rill
