// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/compressed/compressed_storage.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/storage/compressed/compressed_rows.h"
#include "rill/storage/compressed/sealed_block.h"
#include "rill/storage/ring/ring_options.h"
#include "rill/storage/ring/ring_rows.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/serialized/serialized_storage.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace storage_internal {
namespace {

constexpr int64_t kBlockBytes = int64_t{64} << 10;
constexpr int64_t kLeastLaneBlocks = 8;

class CompressedStorageImpl final : public SerializedStorage {
 public:
  explicit CompressedStorageImpl(const CompressedStorage::Options& options)
      : SerializedStorage(
            {.lanes = {options.lanes, options.capacity / options.lanes},
             .has_blocks = true,
             .event_keys = options.event_keys},
            "compressed"),
        block_rows_(options.block_rows),
        level_(options.level) {}

  using SerializedStorage::Init;

 protected:
  absl::StatusOr<std::shared_ptr<RingRows>> MakeRows(
      const TensorDictSpec& spec, EventLeaves events) const override {
    int64_t block_rows = block_rows_;
    if (block_rows == 0) {
      // Each open block is a whole block of plain rows for each lane. So a
      // block is at most an eighth of a lane, however narrow the rows.
      int64_t row_bytes = 0;
      for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
        const int64_t bytes = DTypeSize(leaf.spec.dtype);
        // Wide enough for one row a block, whatever else there is.
        row_bytes +=
            std::min(leaf.spec.shape.num_elements(), kBlockBytes) * bytes;
      }
      block_rows = std::clamp<int64_t>(
          kBlockBytes / std::max<int64_t>(row_bytes, 1), 1,
          std::max<int64_t>(lanes().capacity / kLeastLaneBlocks, 1));
    }
    return CompressedRows::Create(spec, std::move(events), lanes(), block_rows,
                                  level_);
  }

 private:
  const int64_t block_rows_;
  const int level_;
};

absl::Status CheckOptions(const CompressedStorage::Options& options) {
  constexpr absl::string_view kCreate = "CompressedStorage::Create";
  RILL_RETURN_IF_ERROR(
      CheckRingOptions(kCreate, options.capacity, options.lanes));
  const int64_t lane_rows = options.capacity / options.lanes;
  if (options.block_rows < 0 || options.block_rows > lane_rows) {
    return InvalidArgument(
        kCreate, ": Options::block_rows: got ", options.block_rows,
        ", want 0 for the default or in [1, ", lane_rows, "], a lane's");
  }
  if (options.level < BlockSealer::MinLevel() ||
      options.level > BlockSealer::MaxLevel()) {
    return InvalidArgument(kCreate, ": Options::level: got ", options.level,
                           ", want in [", BlockSealer::MinLevel(), ", ",
                           BlockSealer::MaxLevel(), "]");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace storage_internal

absl::StatusOr<std::unique_ptr<Storage>> CompressedStorage::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(storage_internal::CheckOptions(options));
  auto storage =
      std::make_unique<storage_internal::CompressedStorageImpl>(options);
  RILL_RETURN_IF_ERROR(storage->Init(options.spec));
  return storage;
}

}  // namespace rill
