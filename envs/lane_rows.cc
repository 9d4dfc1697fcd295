// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_rows.h"

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace envs_internal {

bool LaneRowsFit(const Tensor* tensor, DType dtype, const Shape& shape) {
  return tensor != nullptr &&
         MayReuse(*tensor, dtype, shape, {}, {.is_passed_in = true});
}

absl::Status LaneRowsError(absl::string_view caller, absl::string_view prefix,
                           absl::string_view key, const Tensor* tensor,
                           DType dtype, const Shape& shape) {
  const std::string name = absl::StrCat(caller, ": leaf \"", prefix, key, "\"");
  const std::string want = absl::StrCat(", want ", DTypeName(dtype),
                                        shape.ToString(), "; use MakeStep");
  if (tensor == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is missing", want));
  }
  if (tensor->dtype() != dtype || !(tensor->shape() == shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": got ", DTypeName(tensor->dtype()),
                     tensor->shape().ToString(), want));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": got ", tensor->is_contiguous() ? "contiguous " : "strided ",
      tensor->is_writable() ? "writable " : "read-only ",
      MemoryKindName(tensor->memory_kind()),
      " memory, want contiguous writable host memory; use MakeStep"));
}

}  // namespace envs_internal

absl::StatusOr<LaneFlags> FindLaneFlags(absl::string_view caller,
                                        const TensorDict& dict, int64_t lanes,
                                        absl::string_view prefix) {
  const Shape shape = {lanes, 1};
  LaneFlags flags;
  RILL_ASSIGN_OR_RETURN(flags.done,
                        LaneRows<bool>(caller, dict, "done", shape, prefix));
  RILL_ASSIGN_OR_RETURN(
      flags.terminated,
      LaneRows<bool>(caller, dict, "terminated", shape, prefix));
  RILL_ASSIGN_OR_RETURN(
      flags.truncated,
      LaneRows<bool>(caller, dict, "truncated", shape, prefix));
  return flags;
}

absl::StatusOr<const TensorDict*> FindNext(absl::string_view caller,
                                           const TensorDict& step) {
  const TensorDict* next = step.FindDict("next");
  if (next == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        caller, ": dictionary \"next\" is missing in the step; use MakeStep"));
  }
  return next;
}

absl::Status CheckLaneMask(absl::string_view caller,
                           absl::Span<const uint8_t> mask, int64_t lanes) {
  if (static_cast<int64_t>(mask.size()) == lanes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": mask has ", mask.size(),
                   " entries, want one a lane: ", lanes));
}

}  // namespace rill
