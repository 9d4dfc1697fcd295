// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/hash.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/stream.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/values/hash_kernel.h"
#include "rill/transforms/values/sip_hash.h"

namespace rill {
namespace {

class HashMap final : public RowMap {
 public:
  HashMap(uint64_t seed, DType dtype) : seed_(seed), dtype_(dtype) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& /*leaf*/) const override {
    // 8 bytes either way: one number, or the bytes of it.
    return LeafSpec::Unbounded(dtype_, {dtype_ == DType::kUInt8 ? 8 : 1});
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const auto width =
        static_cast<size_t>(shape.num_elements() * DTypeSize(dtype));
    for (int64_t i = 0; i < count; ++i, from += width, to += 8) {
      const uint64_t hash = transforms_internal::SipHash(
          seed_, 0, absl::MakeConstSpan(from, width));
      // The lowest byte first: the processor is little-endian (sip_hash.cc).
      std::memcpy(to, &hash, sizeof(hash));
    }
    return absl::OkStatus();
  }

  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    const int64_t count = rows->count();
    const int64_t width =
        rows->shape().num_elements() * DTypeSize(rows->dtype());
    return rows->Launch(
        dtype_, {dtype_ == DType::kUInt8 ? 8 : 1},
        [&](const std::byte* from, std::byte* to, const Stream& stream) {
          return LaunchKernel(
              transforms_internal::HashKernel{
                  .from = reinterpret_cast<const uint8_t*>(from),
                  .to = reinterpret_cast<uint64_t*>(to),
                  .rows = count,
                  .width = width,
                  .key0 = seed_},
              GridFor(count), stream);
        });
  }

 private:
  const uint64_t seed_;
  const DType dtype_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Hash::Create(
    const Options& options) {
  if (options.dtype != DType::kInt64 && options.dtype != DType::kUInt8) {
    return InvalidArgument("Hash::Create: dtype: got ",
                           DTypeName(options.dtype), ", want int64 or uint8");
  }
  return RowwiseTransform::Make(
      "Hash",
      {.map = std::make_shared<HashMap>(options.seed, options.dtype),
       .in_keys = options.in_keys,
       .out_keys = options.out_keys},
      OptionValues()
          .Unsigned("seed", options.seed)
          .Choice("dtype", DTypeName(options.dtype)));
}

}  // namespace rill
