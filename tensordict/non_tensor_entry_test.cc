// SPDX-License-Identifier: Apache-2.0
// TensorDict's operations on a kind that they do not know.
#include "rill/tensordict/non_tensor_entry.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::tensor_internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A number for each row, in no tensor.
class Numbers final : public NonTensorEntry {
 public:
  explicit Numbers(std::vector<int> rows)
      : NonTensorEntry(EntryKind::kRagged), rows_(std::move(rows)) {}

  static const std::vector<int>& Of(const NonTensorEntry& entry) {
    return static_cast<const Numbers&>(entry).rows_;
  }

  absl::Status CheckFits(absl::string_view key,
                         const Shape& batch_shape) const override {
    if (batch_shape == Shape({static_cast<int64_t>(rows_.size())})) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("rows of ", key));
  }
  void VisitTensors(absl::FunctionRef<void(const Tensor&)>) const override {}
  absl::StatusOr<EntryValue> Map(const ShapeOp& op, LeafFn,
                                 const EntryPath& path) const override {
    if (op.kind == ShapeOp::kCopy) return EntryValue(shared_from_this());
    if (op.kind == ShapeOp::kSlice) {
      return EntryValue(std::make_shared<Numbers>(
          std::vector<int>(rows_.begin() + op.begin, rows_.begin() + op.end)));
    }
    return WithKey(absl::InvalidArgumentError("numbers stay"), path);
  }
  absl::StatusOr<NonTensorPointer> Gather(
      absl::Span<const int64_t> rows) const override {
    std::vector<int> chosen;
    for (const int64_t row : rows) chosen.push_back(rows_[row]);
    return std::make_shared<Numbers>(std::move(chosen));
  }
  absl::StatusOr<NonTensorPointer> Join(
      const JoinOp& op, absl::Span<const JoinPart> parts) const override {
    if (op.new_dim) return absl::InvalidArgumentError("no new dimension");
    std::vector<int> all;
    for (const JoinPart& part : parts) {
      all.insert(all.end(), Of(*part.entry).begin(), Of(*part.entry).end());
    }
    return std::make_shared<Numbers>(std::move(all));
  }
  absl::StatusOr<bool> CopyFrom(const NonTensorEntry&, const Shape&, bool,
                                const EntryPath&) const override {
    return true;
  }
  absl::Status Compare(const NonTensorEntry& want, const Comparison& comparison,
                       const EntryPath& path) const override {
    if (rows_ == Of(want)) return absl::OkStatus();
    return comparison.Differs(path, DebugString(), want.DebugString());
  }
  std::string DebugString() const override {
    return absl::StrCat("numbers ", absl::StrJoin(rows_, " "));
  }

 private:
  std::vector<int> rows_;
};

TensorDict WithNumbers(std::vector<int> rows) {
  TensorDict dict = MakeSteps(static_cast<int64_t>(rows.size()));
  RILL_EXPECT_OK(TensorDict::Internal::CheckAndSet(
      &dict, "deep/numbers", std::make_shared<Numbers>(std::move(rows))));
  return dict;
}

TEST(NewKindTest, OperationsKnowNoKind) {
  TensorDict dict = WithNumbers({1, 2, 3});
  EXPECT_THAT(dict.DebugString(), HasSubstr("numbers: numbers 1 2 3\n"));
  EXPECT_THAT(dict.Clone()->DebugString(), HasSubstr("numbers 1 2 3\n"));
  EXPECT_THAT(dict.Slice(0, 1, 3)->DebugString(), HasSubstr("numbers 2 3\n"));
  EXPECT_THAT(dict.Gather({2, 2})->DebugString(), HasSubstr("numbers 3 3\n"));
  EXPECT_THAT(Cat({dict, dict})->DebugString(),
              HasSubstr("numbers 1 2 3 1 2 3\n"));
  RILL_EXPECT_OK(dict.CheckEqual(*dict.To(Device::Cpu())));
  const TensorDict other = WithNumbers({4, 5, 6});
  EXPECT_THAT(dict.CheckEqual(other),
              IsFailedPrecondition("\"deep/numbers\": got numbers 1 2 3, want "
                                   "numbers 4 5 6"));
  RILL_ASSERT_OK(dict.CopyFrom(other));
  RILL_EXPECT_OK(dict.CheckEqual(other));
}

TEST(NewKindTest, ErrorsNameTheKey) {
  const TensorDict dict = WithNumbers({1, 2, 3});
  const auto at_key = HasSubstr("at key \"deep/numbers\"");
  EXPECT_THAT(dict.Index(0), StatusIs(absl::StatusCode::kInvalidArgument,
                                      AllOf(HasSubstr("stay"), at_key)));
  EXPECT_THAT(Stack({dict, dict}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("no new dimension"), at_key)));
  TensorDict out({2});
  EXPECT_THAT(TensorDict::Internal::CheckAndSet(
                  &out, "few", std::make_shared<Numbers>(std::vector<int>{1})),
              IsInvalidArgument("few"));
}

}  // namespace
}  // namespace rill::tensor_internal
