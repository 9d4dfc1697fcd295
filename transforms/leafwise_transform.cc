// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/leafwise_transform.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

// Says of every leaf why there is no map. Constructors return no status, so a
// step that cannot be made is refused where the first leaf is looked at.
class NoMap final : public RowMap {
 public:
  explicit NoMap(absl::Status status) : status_(std::move(status)) {}
  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& /*leaf*/) const override {
    return status_;
  }
  absl::Status MapRows(DType /*dtype*/, const Shape& /*shape*/,
                       int64_t /*count*/, const std::byte* /*from*/,
                       std::byte* /*to*/) const override {
    return status_;
  }

 private:
  const absl::Status status_;
};

// The map of `step`, or one that refuses every leaf with the reason.
std::shared_ptr<const RowMap> MapOf(const RowStep& step) {
  absl::StatusOr<std::shared_ptr<const RowMap>> map = MakeRowStep(step);
  if (map.ok()) return *std::move(map);
  return std::make_shared<NoMap>(map.status());
}

}  // namespace

LeafwiseTransform::LeafwiseTransform(std::vector<std::string> keys,
                                     const RowStep& step)
    : RowwiseTransform({.map = MapOf(step), .in_keys = std::move(keys)}) {}

}  // namespace rill
