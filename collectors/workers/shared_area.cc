// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/shared_area.h"

#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"

namespace rill::workers_internal {
namespace {

using channel_internal::AnonymousMemory;

// Mappings are of whole pages.
int64_t RoundUp(int64_t bytes) {
  const int64_t page = AddressRange::PageBytes();
  return (bytes + page - 1) / page * page;
}

absl::StatusOr<std::shared_ptr<AddressRange>> Map(
    absl::string_view caller, const AnonymousMemory& memory) {
  RILL_ASSIGN_OR_RETURN(auto range, AddressRange::Create(memory.size_bytes()));
  RILL_RETURN_IF_ERROR(memory.Map(caller, *range, 0, 0, memory.size_bytes()));
  return range;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedArea>> SharedArea::Create(
    absl::string_view caller, const std::string& name, int64_t bytes) {
  RILL_ASSIGN_OR_RETURN(auto memory,
                        AnonymousMemory::Create(caller, name, RoundUp(bytes)));
  RILL_RETURN_IF_ERROR(memory->Reserve(caller, 0, memory->size_bytes()));
  RILL_ASSIGN_OR_RETURN(auto range, Map(caller, *memory));
  return absl::WrapUnique(new SharedArea(std::move(memory), std::move(range)));
}

absl::StatusOr<std::unique_ptr<SharedArea>> SharedArea::Attach(
    absl::string_view caller, int fd, int64_t bytes) {
  auto memory = AnonymousMemory::Adopt(fd);
  if (memory == nullptr || memory->size_bytes() != RoundUp(bytes)) {
    return InvalidArgument(caller, ": fd: got another file, want memory of ",
                           RoundUp(bytes), " bytes that Create has made");
  }
  RILL_ASSIGN_OR_RETURN(auto range, Map(caller, *memory));
  return absl::WrapUnique(new SharedArea(std::move(memory), std::move(range)));
}

}  // namespace rill::workers_internal
