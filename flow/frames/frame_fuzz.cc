// SPDX-License-Identifier: Apache-2.0
// Any bytes as a frame, with length and checksum put right. An accepted frame
// lies inside the bytes, can be written again, and then reads the same.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/device/buffer.h"
#include "rill/flow/frames/frame.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

// As docs/formats/frame.md has them.
constexpr size_t kChecksumAt = 12;
constexpr size_t kLengthAt = 16;
constexpr size_t kSchemaAt = 40;

void PutRight(std::string* bytes) {
  if (bytes->size() < kSchemaAt) return;
  const uint64_t length = bytes->size();
  std::memcpy(bytes->data() + kLengthAt, &length, sizeof(length));
  uint64_t parts[2];
  std::memcpy(parts, bytes->data() + kLengthAt + 8, sizeof(parts));
  const uint64_t room = bytes->size() - kSchemaAt;
  if (parts[0] > room || parts[1] > room - parts[0]) return;
  const auto sum = static_cast<uint32_t>(
      absl::ComputeCrc32c(absl::string_view(*bytes).substr(
          kLengthAt, kSchemaAt - kLengthAt + parts[0] + parts[1])));
  std::memcpy(bytes->data() + kChecksumAt, &sum, sizeof(sum));
}

absl::StatusOr<Frame> Decode(const std::shared_ptr<Buffer>& bytes) {
  return DecodeFrame(bytes,
                     {bytes->data(), static_cast<size_t>(bytes->size_bytes())});
}

void Check(std::string input) {
  PutRight(&input);
  const auto bytes = Buffer::Allocate(static_cast<int64_t>(input.size()));
  RILL_FUZZ_CHECK(bytes.ok());
  if (!input.empty()) {
    std::memcpy((*bytes)->data(), input.data(), input.size());
  }
  const absl::StatusOr<Frame> frame = Decode(*bytes);
  if (!frame.ok()) {
    RILL_FUZZ_CHECK(absl::IsDataLoss(frame.status()) ||
                    absl::IsFailedPrecondition(frame.status()));
    return;
  }
  frame->batch.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    const int64_t at = leaf.raw_data() - (*bytes)->data();
    RILL_FUZZ_CHECK(at % kFrameAlignment == 0 && at >= 0 &&
                    at + leaf.size_bytes() <= (*bytes)->size_bytes());
    RILL_FUZZ_CHECK(!leaf.is_writable());
  });
  const auto again = EncodeFrame(frame->header, frame->batch);
  RILL_FUZZ_CHECK(again.ok());
  // Texts that no row has are left out.
  RILL_FUZZ_CHECK((*again)->size_bytes() <= (*bytes)->size_bytes());
  const absl::StatusOr<Frame> same = Decode(*again);
  RILL_FUZZ_CHECK(same.ok());
  RILL_FUZZ_CHECK(same->header == frame->header);
  RILL_FUZZ_CHECK(same->batch.CheckEqual(frame->batch).ok());
  RILL_FUZZ_CHECK(same->batch.dim_names() == frame->batch.dim_names());
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::Check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
