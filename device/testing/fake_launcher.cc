// SPDX-License-Identifier: Apache-2.0
// Kernels on fake devices: on the host, in the order of their stream, with the
// threads of each launch in another order.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/testing/fake_backend.h"

namespace rill {
namespace {

class FakeLauncher final : public KernelLauncher {
 public:
  absl::Status Launch(int index, const KernelCall& call,
                      StreamHandle stream) override {
    RILL_ASSIGN_OR_RETURN(Backend* const backend,
                          GetBackend(Device::Fake(index)));
    auto* const fake = static_cast<FakeBackend*>(backend);
    // The struct, aligned for anything.
    std::vector<std::max_align_t> kernel(call.bytes / sizeof(std::max_align_t) +
                                         1);
    std::memcpy(kernel.data(), call.kernel, call.bytes);
    std::vector<FakeBackend::Range> ranges;
    call.visit_memory(kernel.data(), [&](void*& data, int64_t bytes) {
      if (bytes > 0) ranges.push_back({data, bytes});
    });
    const auto order =
        static_cast<uint64_t>(fake->Count(FakeBackend::Operation::kLaunch) + 1);
    return fake->Launch(index, stream, std::move(ranges),
                        [kernel = std::move(kernel), visit = call.visit_memory,
                         run = call.run_on_host, grid = call.grid,
                         order](absl::Span<std::byte* const> at) {
                          std::vector<std::max_align_t> here = kernel;
                          size_t next = 0;
                          visit(here.data(), [&](void*& data, int64_t bytes) {
                            if (bytes > 0) data = at[next++];
                          });
                          run(here.data(), grid, order);
                        });
  }
};

[[maybe_unused]] const bool registered = [] {
  RegisterKernelLauncher(Device::Type::kFake, std::make_unique<FakeLauncher>());
  return true;
}();

}  // namespace
}  // namespace rill
