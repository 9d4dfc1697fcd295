// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/inference/inference_layout.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/formats/spec_json.h"

namespace rill::inference_internal {
namespace {

// Leaves begin at cache lines.
constexpr int64_t kAlignment = 64;

int64_t RoundUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

absl::Status CheckIsNew(absl::string_view key, const TensorDictSpec& in) {
  if (in.Find(key) == nullptr) return absl::OkStatus();
  return InvalidArgument(
      "leaf \"", key,
      "\": got it twice, want other names in root, action and outputs");
}

}  // namespace

absl::StatusOr<InferenceLayout> InferenceLayout::Create(
    int64_t lanes, const TensorDictSpec& root, const TensorDictSpec& action,
    const TensorDictSpec& outputs) {
  if (lanes < 1) {
    return InvalidArgument("lanes: got ", lanes, ", want >= 1");
  }
  if (action.leaves().empty()) {
    return InvalidArgument("action: got no leaf, want one or more");
  }
  InferenceLayout layout;
  layout.lanes_ = lanes;
  layout.root_ = root;
  layout.action_ = action;
  layout.outputs_ = outputs;
  layout.asked_ = root;
  layout.answered_ = action;
  for (const TensorDictSpec::Leaf& leaf : outputs.leaves()) {
    RILL_RETURN_IF_ERROR(CheckIsNew(leaf.key, layout.answered_));
    RILL_RETURN_IF_ERROR(layout.answered_.Set(leaf.key, leaf.spec));
    // The server knows no lanes' past: recurrent state comes with each question
    // and goes back with the answer.
    absl::string_view key = leaf.key;
    if (!absl::ConsumePrefix(&key, "next/")) continue;
    RILL_RETURN_IF_ERROR(CheckIsNew(key, layout.asked_));
    RILL_RETURN_IF_ERROR(layout.asked_.Set(key, leaf.spec));
  }
  // The server has both in one step, so no key may be in both.
  for (const TensorDictSpec::Leaf& leaf : layout.answered_.leaves()) {
    RILL_RETURN_IF_ERROR(CheckIsNew(leaf.key, layout.asked_));
  }
  layout.question_bytes_ = sizeof(QuestionHead);
  RILL_ASSIGN_OR_RETURN(layout.question_,
                        layout.Place(layout.asked_, &layout.question_bytes_));
  layout.answer_bytes_ = sizeof(AnswerHead);
  RILL_ASSIGN_OR_RETURN(layout.answer_,
                        layout.Place(layout.answered_, &layout.answer_bytes_));
  return layout;
}

absl::StatusOr<std::vector<InferenceLayout::Leaf>> InferenceLayout::Place(
    const TensorDictSpec& spec, int64_t* bytes) const {
  std::vector<Leaf> leaves;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    Leaf placed = {.key = leaf.key,
                   .dtype = leaf.spec.dtype,
                   .shape = leaf.spec.shape,
                   .offset = RoundUp(*bytes),
                   .bytes = 0};
    // Sizes come from users and from other processes: every product is checked.
    if (__builtin_mul_overflow(leaf.spec.shape.num_elements(),
                               DTypeSize(leaf.spec.dtype), &placed.bytes) ||
        __builtin_mul_overflow(lanes_, placed.bytes, &placed.bytes) ||
        __builtin_add_overflow(placed.offset, placed.bytes, bytes) ||
        *bytes > channel_internal::SharedCalls::kMaxBytes) {
      return InvalidArgument(
          "leaf \"", leaf.key, "\": got ", lanes_, " lanes of ",
          leaf.spec.shape.ToString(), ", want at most ",
          channel_internal::SharedCalls::kMaxBytes, " bytes in all");
    }
    leaves.push_back(std::move(placed));
  }
  return leaves;
}

// JSON has no line ends of its own.
absl::StatusOr<std::string> InferenceLayout::ToBytes() const {
  std::string bytes = absl::StrCat(lanes_);
  for (const TensorDictSpec* spec : {&root_, &action_, &outputs_}) {
    RILL_ASSIGN_OR_RETURN(const std::string text, SpecToJson(*spec));
    absl::StrAppend(&bytes, "\n", text);
  }
  return bytes;
}

absl::StatusOr<InferenceLayout> InferenceLayout::FromBytes(
    absl::string_view bytes) {
  const std::vector<absl::string_view> lines = absl::StrSplit(bytes, '\n');
  int64_t lanes = 0;
  if (lines.size() != 4 || !absl::SimpleAtoi(lines[0], &lanes)) {
    // Written and read by the same program.
    return Internal("a layout of other lines");
  }
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec root, SpecFromJson(lines[1]));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec action, SpecFromJson(lines[2]));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec outputs, SpecFromJson(lines[3]));
  return Create(lanes, root, action, outputs);
}

}  // namespace rill::inference_internal
