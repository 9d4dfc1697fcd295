// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/slice_marks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/fill_value.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/units/slice_marks_kernels.h"
#include "rill/transforms/units/unit_input.h"
#include "rill/transforms/units/unit_work.h"

namespace rill {
namespace {

using transforms_internal::DrawOf;
using transforms_internal::ReadLeaf;
using transforms_internal::SliceMarksKernel;
using transforms_internal::WriteLeaf;

bool IsReal(const SamplePlan& plan, size_t row) {
  return plan.mask.empty() || plan.mask[row] != 0;
}

// The first real row of each draw gets the bits. Draws are consecutive, so one
// number remembers which was marked last.
void MarkFirstRows(const SamplePlan& plan, absl::Span<uint8_t> flags,
                   uint8_t bits = 1) {
  int64_t marked = -1;
  for (size_t row = 0; row < flags.size(); ++row) {
    const int64_t draw = DrawOf(plan, static_cast<int64_t>(row));
    if (!IsReal(plan, row) || draw == marked) continue;
    flags[row] |= bits;
    marked = draw;
  }
}

// So does the last real row of each draw: the same from the back.
void MarkLastRows(const SamplePlan& plan, absl::Span<uint8_t> flags,
                  uint8_t bits = 1) {
  int64_t marked = -1;
  for (size_t row = flags.size(); row-- > 0;) {
    const int64_t draw = DrawOf(plan, static_cast<int64_t>(row));
    if (!IsReal(plan, row) || draw == marked) continue;
    flags[row] |= bits;
    marked = draw;
  }
}

// The flag as 0 and 1 in the batch. It is taken from the batch where windows
// have put it, else from the stored rows. Where it is stored nowhere it is `a`
// or `b`, else zeros.
absl::StatusOr<absl::Span<uint8_t>> TakeFlag(absl::string_view caller,
                                             absl::string_view key,
                                             const uint8_t* a, const uint8_t* b,
                                             const TensorDict& rows,
                                             const TensorDict* windows,
                                             TensorDict* batch) {
  const size_t n = static_cast<size_t>(rows.batch_shape()[0]);
  const Shape shape = rows.batch_shape().Concat({1});
  Tensor stored;
  // Stored flags come before the batch's own: the batch may be used again and
  // hold the marks of the call before.
  if (windows != nullptr && windows->Find(key) != nullptr) {
    RILL_ASSIGN_OR_RETURN(stored,
                          ReadLeaf(caller, key, DType::kBool, shape, *batch));
  } else if (rows.Find(key) != nullptr) {
    RILL_ASSIGN_OR_RETURN(stored,
                          ReadLeaf(caller, key, DType::kBool, shape, rows));
  }
  RILL_ASSIGN_OR_RETURN(
      const Tensor flag,
      WriteLeaf(key, DType::kBool, shape, {.is_passed_in = true}, batch));
  uint8_t* out = flag.data<uint8_t>();
  // `stored` may be the same bytes. Any other value of a bool becomes 1.
  if (stored.is_valid()) {
    const uint8_t* from = stored.data<uint8_t>();
    for (size_t i = 0; i < n; ++i) out[i] = from[i] != 0;
  } else {
    for (size_t i = 0; i < n; ++i) out[i] = a != nullptr ? a[i] | b[i] : 0;
  }
  return absl::MakeSpan(out, n);
}

}  // namespace

bool SliceMarks::IsMark(absl::string_view key) const {
  for (const std::string* mark : Marks()) {
    if (*mark == key) return true;
  }
  return false;
}

OptionValues SliceMarks::option_values() const {
  return OptionValues()
      .Text("truncated_key", options_.truncated_key)
      .Text("done_key", options_.done_key)
      .Text("terminated_key", options_.terminated_key)
      .Text("is_init_key", options_.is_init_key);
}

absl::Status SliceMarks::CheckRows(absl::string_view caller,
                                   const TensorDictSpec& rows) const {
  for (const std::string* key : Marks()) {
    if (rows.Find(*key) == nullptr) continue;
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(caller, *key, rows));
  }
  return absl::OkStatus();
}

absl::Status SliceMarks::ExtendSpec(absl::string_view caller,
                                    const TensorDictSpec& rows,
                                    TensorDictSpec* batch) const {
  for (const std::string* key : Marks()) {
    // A mark writes 1, so the domain has to admit it; terminated is only added
    // as 0. is_init is marked where it is stored, and never added.
    LeafSpec flag = LeafSpec::Binary({1});
    if (const LeafSpec* stored = rows.Find(*key)) {
      const double value = *key == options_.terminated_key ? 0 : 1;
      RILL_ASSIGN_OR_RETURN(flag, transforms_internal::WithFillValue(
                                      caller, *key, value, *stored));
    } else if (*key == options_.is_init_key) {
      continue;
    }
    RILL_RETURN_IF_ERROR(batch->Set(*key, flag));
  }
  return absl::OkStatus();
}

absl::Status SliceMarks::Apply(absl::string_view caller, const SamplePlan& plan,
                               const TensorDict& rows,
                               const TensorDict* windows,
                               TensorDict* batch) const {
  const auto take = [&](const std::string& key, const uint8_t* a,
                        const uint8_t* b) {
    return TakeFlag(caller, key, a, b, rows, windows, batch);
  };
  // The truncations are marked first, since done may be made of them: where it
  // is not stored, it is either of the two. The last row is always done.
  RILL_ASSIGN_OR_RETURN(const absl::Span<uint8_t> truncated,
                        take(options_.truncated_key, nullptr, nullptr));
  MarkLastRows(plan, truncated);
  RILL_ASSIGN_OR_RETURN(const absl::Span<uint8_t> terminated,
                        take(options_.terminated_key, nullptr, nullptr));
  RILL_ASSIGN_OR_RETURN(
      const absl::Span<uint8_t> done,
      take(options_.done_key, truncated.data(), terminated.data()));
  MarkLastRows(plan, done);
  // Without a stored is_init, a reset inside a slice would not show.
  if (rows.Find(options_.is_init_key) == nullptr) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const absl::Span<uint8_t> is_init,
                        take(options_.is_init_key, nullptr, nullptr));
  MarkFirstRows(plan, is_init);
  return absl::OkStatus();
}

absl::Status SliceMarks::Enqueue(const SamplePlan& plan, const TensorDict& rows,
                                 const TensorDict* windows,
                                 transforms_internal::UnitWork* work,
                                 TensorDict* batch) const {
  const int64_t n = batch->batch_shape()[0];
  if (n == 0) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const auto places, work->uploads().Mirror<uint8_t>(n));
  const auto marks = absl::MakeSpan(places.host, static_cast<size_t>(n));
  std::fill(marks.begin(), marks.end(), uint8_t{0});
  MarkFirstRows(plan, marks, SliceMarksKernel::kFirst);
  MarkLastRows(plan, marks, SliceMarksKernel::kLast);
  SliceMarksKernel kernel = {.num_rows = n, .places = places.device};
  const auto take = [&](const std::string& key,
                        SliceMarksKernel::Flag* flag) -> absl::Status {
    // As TakeFlag does. The kernel reads a flag before it writes that.
    if (windows != nullptr && windows->Find(key) != nullptr) {
      RILL_ASSIGN_OR_RETURN(const Tensor stored,
                            work->Read(key, DType::kBool, {n, 1}, *batch));
      flag->stored = stored.data<uint8_t>();
    } else if (rows.Find(key) != nullptr) {
      RILL_ASSIGN_OR_RETURN(
          const Tensor stored,
          work->Read(key, DType::kBool, rows.batch_shape().Concat({1}), rows));
      flag->stored = stored.data<uint8_t>();
    }
    RILL_ASSIGN_OR_RETURN(const Tensor marked,
                          work->Write(key, DType::kBool, {n, 1}, batch));
    flag->marked = marked.data<uint8_t>();
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(take(options_.truncated_key, &kernel.truncated));
  RILL_RETURN_IF_ERROR(take(options_.terminated_key, &kernel.terminated));
  RILL_RETURN_IF_ERROR(take(options_.done_key, &kernel.done));
  if (rows.Find(options_.is_init_key) != nullptr) {
    RILL_RETURN_IF_ERROR(take(options_.is_init_key, &kernel.is_init));
  }
  work->Launch(kernel, GridFor(n));
  return absl::OkStatus();
}

absl::StatusOr<SliceMarks> SliceMarks::Create(const Options& options) {
  const std::array<const std::string*, 4> keys = {
      &options.truncated_key, &options.done_key, &options.terminated_key,
      &options.is_init_key};
  for (size_t i = 0; i < keys.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckKey(*keys[i])) << "SliceMarks::Create: key";
    for (size_t j = 0; j < i; ++j) {
      if (*keys[i] != *keys[j]) continue;
      return InvalidArgument("SliceMarks::Create: got the key \"", *keys[i],
                             "\" twice, want four keys");
    }
  }
  return SliceMarks(options);
}

}  // namespace rill
