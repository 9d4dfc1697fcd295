// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/slice_marks.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/fill_value.h"
#include "rill/transforms/units/unit_input.h"

namespace rill {
namespace {

using transforms_internal::DrawOf;
using transforms_internal::InputLeaf;
using transforms_internal::OutputLeaf;

constexpr absl::string_view kPlanReads = "SliceMarks::PlanReads";
constexpr absl::string_view kBatchSpec = "SliceMarks::BatchSpec";
constexpr absl::string_view kApply = "SliceMarks::Apply";

bool IsReal(const SamplePlan& plan, size_t row) {
  return plan.mask.empty() || plan.mask[row] != 0;
}

class SliceMarksTransform final : public UnitTransform {
 public:
  explicit SliceMarksTransform(const SliceMarks::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "SliceMarks"; }

  // The flags are read apart: a batch that is used again holds those that are
  // not stored too.
  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kPlanReads, rows));
    Reads reads;
    for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
      (IsMark(leaf.key) ? reads.rows.apart : reads.rows.batch)
          .push_back(leaf.key);
    }
    return reads;
  }

  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kBatchSpec, rows));
    TensorDictSpec batch = rows;
    for (const std::string* key : Marks()) {
      LeafSpec flag = LeafSpec::Binary({1});
      if (const LeafSpec* stored = rows.Find(*key)) {
        const double value = *key == options_.terminated_key ? 0 : 1;
        RILL_ASSIGN_OR_RETURN(flag, transforms_internal::WithFillValue(
                                        kBatchSpec, *key, value, *stored));
      } else if (*key == options_.is_init_key) {
        continue;
      }
      RILL_RETURN_IF_ERROR(batch.Set(*key, flag));
    }
    return batch;
  }

  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(kApply, plan, 0, rows,
                                                         context, *batch));
    RILL_ASSIGN_OR_RETURN(
        const absl::Span<uint8_t> truncated,
        TakeFlag(options_.truncated_key, nullptr, nullptr, rows, batch));
    MarkLastRows(plan, truncated);
    RILL_ASSIGN_OR_RETURN(
        const absl::Span<uint8_t> terminated,
        TakeFlag(options_.terminated_key, nullptr, nullptr, rows, batch));
    RILL_ASSIGN_OR_RETURN(const absl::Span<uint8_t> done,
                          TakeFlag(options_.done_key, truncated.data(),
                                   terminated.data(), rows, batch));
    MarkLastRows(plan, done);
    if (rows.Find(options_.is_init_key) == nullptr) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(
        const absl::Span<uint8_t> is_init,
        TakeFlag(options_.is_init_key, nullptr, nullptr, rows, batch));
    MarkFirstRows(plan, is_init);
    return absl::OkStatus();
  }

 private:
  std::array<const std::string*, 4> Marks() const {
    return {&options_.truncated_key, &options_.terminated_key,
            &options_.done_key, &options_.is_init_key};
  }

  bool IsMark(absl::string_view key) const {
    for (const std::string* mark : Marks()) {
      if (*mark == key) return true;
    }
    return false;
  }

  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const {
    for (const std::string* key : Marks()) {
      if (rows.Find(*key) == nullptr) continue;
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckIsFlag(caller, *key, rows));
    }
    return absl::OkStatus();
  }

  // The stored flags as 0 and 1 in the batch; where there are none, those of
  // `a` or `b`, or zeros.
  static absl::StatusOr<absl::Span<uint8_t>> TakeFlag(absl::string_view key,
                                                      const uint8_t* a,
                                                      const uint8_t* b,
                                                      const TensorDict& rows,
                                                      TensorDict* batch) {
    const size_t n = static_cast<size_t>(rows.batch_shape()[0]);
    const Shape shape = rows.batch_shape().Concat({1});
    RILL_ASSIGN_OR_RETURN(const Tensor flag,
                          OutputLeaf(key, DType::kBool, shape, batch));
    uint8_t* out = flag.data<uint8_t>();
    if (rows.Find(key) != nullptr) {
      RILL_ASSIGN_OR_RETURN(const Tensor stored,
                            InputLeaf(kApply, key, DType::kBool, shape, rows));
      const uint8_t* from = stored.data<uint8_t>();
      for (size_t i = 0; i < n; ++i) out[i] = from[i] != 0;
    } else {
      for (size_t i = 0; i < n; ++i) out[i] = a != nullptr ? a[i] | b[i] : 0;
    }
    return absl::MakeSpan(out, n);
  }

  static void MarkFirstRows(const SamplePlan& plan, absl::Span<uint8_t> flags) {
    int64_t marked = -1;
    for (size_t row = 0; row < flags.size(); ++row) {
      const int64_t draw = DrawOf(plan, static_cast<int64_t>(row));
      if (!IsReal(plan, row) || draw == marked) continue;
      flags[row] = 1;
      marked = draw;
    }
  }

  static void MarkLastRows(const SamplePlan& plan, absl::Span<uint8_t> flags) {
    int64_t marked = -1;
    for (size_t row = flags.size(); row-- > 0;) {
      const int64_t draw = DrawOf(plan, static_cast<int64_t>(row));
      if (!IsReal(plan, row) || draw == marked) continue;
      flags[row] = 1;
      marked = draw;
    }
  }

  const SliceMarks::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnitTransform>> SliceMarks::Create(
    const Options& options) {
  const std::array<const std::string*, 4> keys = {
      &options.truncated_key, &options.done_key, &options.terminated_key,
      &options.is_init_key};
  for (size_t i = 0; i < keys.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckKey(*keys[i])) << "SliceMarks::Create: key";
    for (size_t j = 0; j < i; ++j) {
      if (*keys[i] != *keys[j]) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("SliceMarks::Create: got the key \"", *keys[i],
                       "\" twice, want four keys"));
    }
  }
  return std::make_unique<SliceMarksTransform>(options);
}

}  // namespace rill
