// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_REMOVING_WRITER_H_
#define RILL_REPLAY_WRITERS_REMOVING_WRITER_H_

#include <cstdint>
#include <memory>

#include "rill/replay/writers/writer.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/sampler.h"

namespace rill {

struct RemovingWriterOptions {
  // Says which row has to go where the storage is full: any selector over
  // rows, as it would choose them for a batch. Null: FIFO, the oldest.
  std::unique_ptr<Selector> remover = nullptr;
  uint64_t seed = 0;  // Of removers that draw by chance.
  // Rows that this one has used up (Sampler::AddUsedUp) go first, whether the
  // storage is full or not: the buffer's own consuming sampler. Not owned; must
  // live as long as rows are written. Null: none do.
  const Sampler* used_up_by = nullptr;
};

// Takes every row. It goes in the place of one that was used up, else in a free
// slot. Else it goes, by a write in place, in that of the row that the remover
// names, as the removers of Reverb's tables do. That is the oldest or newest
// (ordered_selector.h, FIFO or LIFO), the one of the lowest or highest priority
// (min or max heap), or any (uniform, prioritized). With a FIFO remover rows
// lie where a ring puts them.
//
// The rows of a batch that need one take the places of as many different rows,
// which are named before the first of them is written. A batch larger than the
// storage does that for as many rows as the storage has, then for the next
// ones. A remover that names a row twice is asked again. One that still does
// after 64 times (priorities that differ by many orders of magnitude) leaves
// the rest of the choice to the lowest slots.
//
// The remover receives priorities that come with the rows (EventKeys::priority)
// and with WriteAt of that key, not those of ReplayBuffer::UpdatePriorities.
//
// Deterministic: the victims are a function of the seed and the history of the
// storage since the attaching, which is saved with a buffer. Rows that were
// there before count as being as old as their slots.
//
// For storages of one lane, and for samplers of single rows. A row in another's
// place is no neighbour of those around it, so that trajectories would be torn.
// So its traits have keeps_order false, and ReplayBuffer::Create refuses other
// samplers.
//
// Attach: INVALID_ARGUMENT where the storage has several lanes. Extend:
// FAILED_PRECONDITION where the remover cannot name a row (all priorities are
// 0), with its words. Batches are [time] or [1, time]; what does not fit
// changes nothing. The rows in places of used-up ones, the appended ones and
// the replacing ones are a write each: where a later one fails, the earlier
// stay.
//
// Thread-safety: thread-safe, one Extend at a time.
// Cost: O(rows) and the copies, and the remover's cost of a draw each, O(log
//   rows stored) with those of ordered_selector.h; its memory, 32 bytes a row.
//
// Example (RemovingWriterTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto lowest, MakeMinHeapSelector());
//   const auto writer = MakeRemovingWriter({.remover = std::move(lowest)});
//   RILL_RETURN_IF_ERROR(writer->Attach(storage));
//   RILL_RETURN_IF_ERROR(writer->Extend(steps).status());  // [time]
std::unique_ptr<Writer> MakeRemovingWriter(RemovingWriterOptions options = {});

}  // namespace rill

#endif  // RILL_REPLAY_WRITERS_REMOVING_WRITER_H_
