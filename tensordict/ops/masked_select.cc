// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/masked_select.h"

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::ops {

absl::StatusOr<TensorDict> MaskedSelect(const TensorDict& dict,
                                        const Tensor& mask) {
  const Shape& batch = dict.batch_shape();
  if (mask.dtype() != DType::kBool || mask.rank() == 0 || !mask.is_host() ||
      !batch.StartsWith(mask.shape())) {
    return InvalidArgument(
        "ops::MaskedSelect: mask: got ", DTypeName(mask.dtype()),
        mask.shape().ToString(), " on ", mask.device().ToString(),
        ", want bool of the first dimensions of batch shape ", batch.ToString(),
        " on the CPU");
  }
  RILL_ASSIGN_OR_RETURN(const Tensor flags, mask.Contiguous());
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < flags.num_elements(); ++row) {
    if (flags.data<bool>()[row]) rows.push_back(row);
  }
  if (mask.rank() == 1) return dict.Gather(rows);
  RILL_ASSIGN_OR_RETURN(const TensorDict flat,
                        dict.Reshape(Shape{mask.num_elements()}.Concat(
                            batch.Suffix(mask.rank()))));
  return flat.Gather(rows);
}

}  // namespace rill::ops
