// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_FRAMES_FRAME_H_
#define RILL_FLOW_FRAMES_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A dictionary as one block of bytes that describes itself, for ways between
// processes that know only bytes: MPI, shared memory, files. The tensors are
// columns, each at a multiple of kFrameAlignment, so what arrives is read where
// it lies. A header of any bytes goes with it. docs/formats/frame.md has every
// byte.
//
// A frame keeps entries of all kinds in their order, batch shapes and names of
// dimensions. It does not keep locks and devices.
// Thread-safety: thread-safe for different blocks.
// Device: host memory only.
//
// Example (FrameTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> bytes,
//                         EncodeFrame("header", batch));
//   RILL_ASSIGN_OR_RETURN(
//       const Frame frame,
//       DecodeFrame(bytes, {bytes->data(),
//                           static_cast<size_t>(bytes->size_bytes())}));

inline constexpr int64_t kFrameAlignment = 64;

struct Frame {
  std::string header;
  TensorDict batch;
};

// Bytes of the frame, a multiple of kFrameAlignment. INVALID_ARGUMENT names the
// key of a leaf on a device (use To), of a lazy stack without members, or of
// what lies more than 32 dictionaries deep. It is also the error for more than
// 16,384 entries and members, and for bytes that do not fit in int64.
// Cost: O(entries + values of rows); no element of a tensor is read.
absl::StatusOr<int64_t> FrameBytes(absl::string_view header,
                                   const TensorDict& batch);

// Writes all bytes of `to`, which has FrameBytes of them, begins at a multiple
// of kFrameAlignment and shares none with `batch` (INVALID_ARGUMENT for the
// first two). Leaves with strides are packed. Errors as FrameBytes.
absl::Status EncodeFrame(absl::string_view header, const TensorDict& batch,
                         absl::Span<std::byte> to);

// The same into new memory. RESOURCE_EXHAUSTED where there is none.
absl::StatusOr<std::shared_ptr<Buffer>> EncodeFrame(absl::string_view header,
                                                    const TensorDict& batch);

// A run of a frame's bytes, a multiple of kFrameAlignment.
struct FramePiece {
  std::shared_ptr<Buffer> owner;
  absl::Span<const std::byte> bytes;
};
// One behind the other they are the frame.
using FramePieces = std::vector<FramePiece>;
inline constexpr int kMaxFramePieces = 64;

// A frame for ways that take several runs of bytes. Columns of at least
// `min_bytes`, without strides, stay where they are: nobody writes to them
// while pieces are used. All else is in one new block. There are at most
// kMaxFramePieces; a batch with more has one. Errors as EncodeFrame.
absl::StatusOr<FramePieces> EncodeFramePieces(absl::string_view header,
                                              const TensorDict& batch,
                                              int64_t min_bytes);
int64_t FrameBytes(const FramePieces& pieces);
// The frame as one block, a copy. RESOURCE_EXHAUSTED where there is no memory.
absl::StatusOr<std::shared_ptr<Buffer>> JoinFrame(const FramePieces& pieces);

// Tensors, and the elements of ragged ones, are read-only views of `bytes`,
// which `owner` keeps: nobody may write to them any more. The header, texts,
// and what says where rows lie are copied.
//
// Nothing is believed before it was checked: DATA_LOSS says what is wrong and
// where. A checksum is over all but the columns. It finds damage, not intent.
// FAILED_PRECONDITION for a form of frames that this program does not know.
// INVALID_ARGUMENT where `bytes` do not begin at a multiple of
// kFrameAlignment: copying them would hide the cost.
// Cost: O(entries + rows of ragged tensors and values of rows); memory in
// proportion to the bytes. Columns of tensors are not read.
absl::StatusOr<Frame> DecodeFrame(std::shared_ptr<const void> owner,
                                  absl::Span<const std::byte> bytes);

}  // namespace rill

#endif  // RILL_FLOW_FRAMES_FRAME_H_
