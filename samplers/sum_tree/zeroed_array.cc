// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/sum_tree/zeroed_array.h"

#include <sys/mman.h>

#include <cstddef>

#include "absl/log/absl_check.h"

namespace rill::samplers_internal {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kUseHugePagesFrom = kHugePage;

}  // namespace

ZeroedBytes AllocateZeroed(int64_t bytes, void** aligned) {
  const auto size = static_cast<size_t>(bytes);
  const size_t align = size >= kUseHugePagesFrom ? kHugePage : kLineBytes;
  // Memory that calloc has fresh from the system is not touched before use.
  ZeroedBytes memory(std::calloc(size + align, 1));
  ABSL_CHECK(memory != nullptr) << "out of memory: " << size << " bytes";
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  *aligned = reinterpret_cast<void*>((address + align - 1) / align * align);
  // Leaves are visited at random: with small pages most visits miss the TLB
  // too.
  if (align == kHugePage) madvise(*aligned, size, MADV_HUGEPAGE);
  return memory;
}

}  // namespace rill::samplers_internal
