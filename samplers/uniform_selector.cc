// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/uniform_selector.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/types/span.h"
#include "rill/base/random_blocks.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"

namespace rill {
namespace {

class UniformSelector final : public Selector {
 public:
  UniformSelector()
      : Selector({.name = "Uniform",
                  .picks_by_unit = true,
                  .needs_anchor_events = false}) {}

  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override {
    const Rng rng(request.seed, RngStream::kSampler);
    draws->reserve(draws->size() + request.count);
    // Random numbers and picks come in blocks that fit the stack: the first are
    // made several at a time, and the loads of the second overlap.
    constexpr int64_t kAtOnce = 64;
    std::array<Rng::Block, kAtOnce> bits;
    std::array<Slot, kAtOnce> slots;
    std::array<Draw, kAtOnce> picked;
    for (int64_t done = 0; done < request.count; done += kAtOnce) {
      const size_t count =
          static_cast<size_t>(std::min(kAtOnce, request.count - done));
      RandomBlocks(rng, request.batch_number,
                   static_cast<uint32_t>(request.first_draw + done),
                   absl::MakeSpan(bits.data(), count));
      anchors.PickMany(absl::MakeConstSpan(bits.data(), count),
                       absl::MakeSpan(slots.data(), count));
      for (size_t i = 0; i < count; ++i) picked[i].slot = slots[i];
      draws->insert(draws->end(), picked.begin(), picked.begin() + count);
    }
  }

  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& /*lanes*/,
                absl::Span<const Cursor> /*cursors*/) override {}
  void OnWrite(const WriteEvent& /*event*/) override {}
  void OnClear() override {}
};

}  // namespace

std::unique_ptr<Selector> MakeUniformSelector() {
  return std::make_unique<UniformSelector>();
}

}  // namespace rill
