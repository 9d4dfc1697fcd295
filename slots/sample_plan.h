// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_SAMPLE_PLAN_H_
#define RILL_SLOTS_SAMPLE_PLAN_H_

#include <cstdint>
#include <vector>

#include "rill/slots/slot.h"

namespace rill {

// Which rows make a batch. Numbers only: a sampler fills it, the storage
// gathers the rows, and the unit's transform (transforms/unit_transform.h) does
// arithmetic on their values where a unit needs any.
struct SamplePlan {
  // Rows beside those of the batch, of which that transform needs some leaves:
  // the steps behind a row whose rewards it sums, the frames before it. The
  // unit tells which lists it makes.
  struct Context {
    std::vector<Slot> rows;         // [N], in order.
    std::vector<int64_t> segments;  // [N], into `draws`, ascending.
    // 0 where a row only takes the place of one that there is not. [N], empty
    // where none does.
    std::vector<uint8_t> mask;

    void Clear() {
      rows.clear();
      segments.clear();
      mask.clear();
    }
  };

  // The picks: one an item of the batch. [B]
  std::vector<Draw> draws;
  // The rows to gather, in order, and for each the pick that it belongs to.
  // Empty where every pick is one row: then the rows are the draws' slots.
  std::vector<Slot> rows;         // [R]
  std::vector<int64_t> segments;  // [R], into `draws`, ascending.
  // The generation that each row has now, as Draw::generation. [R]
  std::vector<int64_t> generations;
  // 0 where a row only pads its segment; empty where none does. [R]
  std::vector<uint8_t> mask;
  std::vector<Context> context;
  // Tells the epochs of a sampler apart that goes through its items epoch by
  // epoch; else 0.
  uint64_t epoch = 0;

  // Keeps the memory, that of the lists of `context` too: a unit sets how many
  // there are.
  void Clear() {
    draws.clear();
    rows.clear();
    segments.clear();
    generations.clear();
    mask.clear();
    for (Context& list : context) list.Clear();
    epoch = 0;
  }
};

}  // namespace rill

#endif  // RILL_SLOTS_SAMPLE_PLAN_H_
