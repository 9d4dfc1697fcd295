// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_STORAGE_TRAITS_H_
#define RILL_STORAGE_STORAGE_TRAITS_H_

#include "rill/device/device.h"
#include "rill/slots/slot.h"
#include "rill/storage/event_keys.h"

namespace rill {

// The facts about a storage's rows, fixed once it has been made.
// Thread-safety: a value.
struct StorageTraits {
  Lanes lanes;
  Device device = Device::Cpu();  // Where the rows lie.
  // Rows may differ in shape, so that batches are padded and hold more than
  // spec() names (ListStorage).
  bool ragged_leaves = false;
  // Extend asks observers before it overwrites rows, and waits as long as they
  // do (WriteObserver::BeforeOverwrite): a replay buffer until it has gathered
  // the batches that it has drawn.
  bool asks_before_overwriting = false;
  // A read opens whole blocks of rows (CompressedStorage): reads of a batch's
  // parts, one after another, would open some of them again.
  bool has_blocks = false;
  // Kernels of a reader's own may read the rows where they lie on the device
  // (RowReader::ListRead::table).
  bool shows_tables = false;
  // Of the events that observers get.
  EventKeys event_keys = {};
};

}  // namespace rill

#endif  // RILL_STORAGE_STORAGE_TRAITS_H_
