// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/interruptor.h"

#include "absl/memory/memory.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"

namespace rill::workers_internal {
namespace {

using channel_internal::AnonymousMemory;

// Processes agree on a value without a lock only then.
static_assert(std::atomic<int64_t>::is_always_lock_free);

}  // namespace

absl::StatusOr<std::unique_ptr<Interruptor>> Interruptor::Create() {
  constexpr absl::string_view kCreate = "Interruptor::Create";
  const int64_t bytes = AddressRange::PageBytes();
  RILL_ASSIGN_OR_RETURN(
      auto memory, AnonymousMemory::Create(kCreate, "rill_interruptor", bytes));
  RILL_RETURN_IF_ERROR(memory->Reserve(kCreate, 0, bytes));
  auto interruptor = absl::WrapUnique(new Interruptor(std::move(memory)));
  RILL_RETURN_IF_ERROR(interruptor->Map(kCreate));
  return interruptor;
}

absl::StatusOr<std::unique_ptr<Interruptor>> Interruptor::Attach(int fd) {
  constexpr absl::string_view kAttach = "Interruptor::Attach";
  auto memory = AnonymousMemory::Adopt(fd);
  if (memory == nullptr || memory->size_bytes() != AddressRange::PageBytes()) {
    return InvalidArgument(
        "Interruptor::Attach: fd: got another file, want that of an "
        "Interruptor");
  }
  auto interruptor = absl::WrapUnique(new Interruptor(std::move(memory)));
  RILL_RETURN_IF_ERROR(interruptor->Map(kAttach));
  return interruptor;
}

absl::Status Interruptor::Map(absl::string_view caller) {
  const int64_t bytes = AddressRange::PageBytes();
  RILL_ASSIGN_OR_RETURN(range_, AddressRange::Create(bytes));
  RILL_RETURN_IF_ERROR(memory_->Map(caller, *range_, 0, 0, bytes));
  // Fresh memory reads as zero, which is no round. A worker maps it later, and
  // must not begin it anew.
  last_ = reinterpret_cast<std::atomic<int64_t>*>(range_->data());
  return absl::OkStatus();
}

void Interruptor::Interrupt(int64_t round) {
  // Relaxed: the number orders nothing else, and a worker that sees it a step
  // later makes one step more.
  int64_t before = last_->load(std::memory_order_relaxed);
  while (before < round) {
    if (last_->compare_exchange_weak(before, round,
                                     std::memory_order_relaxed)) {
      FaultPoint("interruptor.interrupted", "").IgnoreError();
      return;
    }
  }
}

}  // namespace rill::workers_internal
