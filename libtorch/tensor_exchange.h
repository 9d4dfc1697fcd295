// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TENSOR_EXCHANGE_H_
#define RILL_LIBTORCH_TENSOR_EXCHANGE_H_

#include <memory>
#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "rill/device/stream.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "torch/ordered_dict.h"

namespace rill {

// Rill's tensors as torch's and back, without a copy: both sides read and write
// the same bytes. All dtypes, ranks up to 8, all strides that the other side
// has; the CPU, pinned memory and CUDA devices. Either side may go first: the
// bytes live until both have. Nothing is copied in silence: what cannot be
// shared is an error that says what to do.
//
// The bytes do not stay as they are: a tensor of a batch changes with the next
// SampleInto or Next that writes over the batch. Torch's autograd knows nothing
// of what Rill writes.
//
// Thread-safety: thread-safe; bytes may be released in any thread.
// Device/Stream: nothing waits. Memory of a device that torch lets go is freed
//   behind the work of the stream that was current at ToTorch. A caller waits
//   for work in other streams. Rill reads what torch still writes in torch's
//   stream (torch_stream.h). The caller keeps host memory that a copy of torch
//   with non_blocking reads.
// Cost: about 0.2 us a tensor, an event more at its end on a device.
//
// Example (TensorExchangeTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
//   RILL_ASSIGN_OR_RETURN(TorchTensors inputs, ToTorch(batch));
//   at::Tensor q = net->forward(inputs["observation"]);

// Leaves by their keys ("next/observation"), in the dictionary's order. Its
// operator[] throws where there is no such key; find() gives null.
using TorchTensors = torch::OrderedDict<std::string, at::Tensor>;

// INVALID_ARGUMENT: no tensor (is_valid() is false); a read-only one, as torch
//   has no such tensors; byte strides that are negative or no multiple of the
//   element's size. FAILED_PRECONDITION: a device that this LibTorch has not.
absl::StatusOr<at::Tensor> ToTorch(const Tensor& tensor);

// All leaves. Errors name the key. INVALID_ARGUMENT also where there is an
// entry that is no tensor, as a text, a lazy stack or a ragged tensor: Select
// the keys that torch reads.
absl::StatusOr<TorchTensors> ToTorch(const TensorDict& dict);

// The same of a batch whose copy may be under way, as PendingBatch of
// ReplayBuffer and SyncCollector. Torch's current stream waits for `copied`
// (null: it is all there), and the host does not, but for leaves in host
// memory.
absl::StatusOr<TorchTensors> ToTorch(
    const TensorDict& batch, const std::shared_ptr<const Event>& copied);

// Makes the storage of `tensor` one that cannot be resized, as torch does for
// NumPy: its old bytes would go.
// INVALID_ARGUMENT: an undefined tensor, one that requires a gradient (detach()
//   it), a layout but strided, a tensor that is conjugated or negated lazily.
//   So are tensors without bytes of their own (meta, zero, batched by vmap),
//   dtypes that Rill has not (float8, quantized types), ranks above 8, and
//   elements that are not aligned.
// FAILED_PRECONDITION: a device without a backend in this program.
absl::StatusOr<Tensor> FromTorch(const at::Tensor& tensor);

// A dictionary of these. Keys are as in tensordict/key.h. Errors name the key;
// those of TensorDict::Set.
absl::StatusOr<TensorDict> FromTorch(const TorchTensors& tensors,
                                     const Shape& batch_shape);

}  // namespace rill

#endif  // RILL_LIBTORCH_TENSOR_EXCHANGE_H_
