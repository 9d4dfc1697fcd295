// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_MIXTURE_SELECTOR_H_
#define RILL_SAMPLERS_SELECTORS_MIXTURE_SELECTOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/samplers/selector.h"

namespace rill {

// A batch of parts, each chosen by a selector of its own over the same unit:
// half uniform and half newest rows. Shares are exact, not drawn: a part has
// floor(n x share) of n draws. Draws that are left over go to the parts with
// the largest remainders, one each; the earlier of equal parts comes first. So
// a part whose share of a batch is below one draw may never have one: choose
// batches of which every share is a whole number.
//
// Parts draw independently: each has random numbers of its own, and an epoch of
// one is in another order than that of another. Draws follow one another part
// after part. Where one part has nothing to select, none selects and Plan fails
// with that part's error. Parts that are not weighted give the weight 1.
//
// Each consuming part counts its own draws. A row is used up
// (Sampler::AddUsedUp) once all parts have used it up. Where one part is of
// another kind, none ever is.
//
// Thread-safety: thread-compatible.
// Cost: that of the parts, each of which receives every event. Where all of
//   them consume, O(parts) a draw and row written, and 24 bytes a row.
struct MixturePart {
  std::unique_ptr<Selector> selector = nullptr;
  double share = 0;  // > 0 and finite; of the sum of all shares.
};
// INVALID_ARGUMENT where there is no part, more than 255, or one without
// selector or share.
//
// Example (MixtureSelectorTest.Example runs it):
//   std::vector<MixturePart> parts;
//   parts.push_back({.selector = MakeUniformSelector(), .share = 0.75});
//   parts.push_back({.selector = MakeLifoSelector(), .share = 0.25});
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Selector> selector,
//                         MakeMixtureSelector(std::move(parts)));
absl::StatusOr<std::unique_ptr<Selector>> MakeMixtureSelector(
    std::vector<MixturePart> parts);

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTORS_MIXTURE_SELECTOR_H_
