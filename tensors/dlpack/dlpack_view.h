// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_DLPACK_DLPACK_VIEW_H_
#define RILL_TENSORS_DLPACK_DLPACK_VIEW_H_

#include "absl/status/statusor.h"
#include "rill/tensors/dlpack/dlpack.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Tensors as DLPack sees them, and back: bytes shared with NumPy, torch, JAX or
// CuPy in the same process, without a copy in either direction. All dtypes,
// strides and ranks; the CPU, CUDA devices and pinned memory. The fake device
// of tests is kDLExtDev, in programs that link it.
//
// Thread-safety: thread-safe. Deleters may be called, and imported tensors may
//   go, in any thread; a producer that wants a lock for that (Python's) takes
//   it in its deleter.
// Device/Stream: no device is touched and no stream is waited for. A producer
//   of device memory ensures that its writes are complete, or ordered before
//   the consumer's work by the stream that both agreed on.
// Cost: O(rank) and one allocation.
//
// Example (DLPackTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(DLManagedTensor* managed, ToDLPack(tensor));
//   // Here another library takes it: PyCapsule_New(managed, "dltensor", ...).
//   RILL_ASSIGN_OR_RETURN(Tensor same_bytes, FromDLPack(managed));

// The caller owns the result: it, or whom it is handed to, calls the deleter,
// and until then the bytes live. They do not stay as they are: an array of a
// batch changes with the next SampleInto or Next that writes over the batch.
// Hand out a Clone of what is kept.
// `data` is the first element's address (null without elements) and byte_offset
// 0, as some consumers read no other; strides are always there. Negative ones
// and those of 0 (Expand) are passed on: a consumer that cannot have them says
// so, as NumPy 1.24 does of bool. Mapped files are CPU memory. Pinned memory is
// said to be CUDA's, of device 0, for any device.
// INVALID_ARGUMENT: no tensor (is_valid() is false), and byte strides that are
//   no multiple of the element's size. So are read-only tensors, as this form
//   has no way to say so: use ToDLPackVersioned, or Clone.
absl::StatusOr<DLManagedTensor*> ToDLPack(const Tensor& tensor);

// The same, and a read-only tensor has kDLPackFlagReadOnly.
absl::StatusOr<DLManagedTensorVersioned*> ToDLPackVersioned(
    const Tensor& tensor);

// Takes `managed`: its deleter is called once, when the last tensor over its
// bytes goes, or before this returns an error. Flag read-only gives a tensor
// that is not is_writable().
// INVALID_ARGUMENT: null, another major version, a device but for CPU, CUDA and
//   CUDA host, lanes, a dtype that we do not have (named), a rank above 8. So
//   are sizes or strides whose elements do not fit in the address space, and a
//   null pointer to elements. Elements that are not aligned for their type are
//   refused too: nothing is copied in silence, so copy them at their origin.
// Neither size nor address can be checked against the producer's memory: a
// DLTensor does not say how much there is.
absl::StatusOr<Tensor> FromDLPack(DLManagedTensor* managed);
absl::StatusOr<Tensor> FromDLPack(DLManagedTensorVersioned* managed);

}  // namespace rill

#endif  // RILL_TENSORS_DLPACK_DLPACK_VIEW_H_
