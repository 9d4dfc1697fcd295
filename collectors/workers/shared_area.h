// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_SHARED_AREA_H_
#define RILL_COLLECTORS_WORKERS_SHARED_AREA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/sparse_file.h"
#include "rill/flow/channel/anonymous_memory.h"

namespace rill::workers_internal {

// Memory of a fixed size that a collector and its workers have mapped. Fresh
// memory reads as zero. Errors begin with `caller`.
// Thread-safety: immutable; the bytes are the users' to synchronise.
class SharedArea {
 public:
  // RESOURCE_EXHAUSTED where there is no memory or no descriptor left. `name`
  // is seen in /proc, by people.
  static absl::StatusOr<std::unique_ptr<SharedArea>> Create(
      absl::string_view caller, const std::string& name, int64_t bytes);
  // By the descriptor of another one of as many bytes, which is now this one's.
  // INVALID_ARGUMENT where it is something else.
  static absl::StatusOr<std::unique_ptr<SharedArea>> Attach(
      absl::string_view caller, int fd, int64_t bytes);

  int fd() const { return memory_->fd(); }
  std::byte* data() const { return range_->data(); }

 private:
  SharedArea(std::unique_ptr<channel_internal::AnonymousMemory> memory,
             std::shared_ptr<AddressRange> range)
      : memory_(std::move(memory)), range_(std::move(range)) {}

  const std::unique_ptr<channel_internal::AnonymousMemory> memory_;
  const std::shared_ptr<AddressRange> range_;
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_SHARED_AREA_H_
