// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ON_DISK_ROWS_ON_DISK_H_
#define RILL_STORAGE_ON_DISK_ROWS_ON_DISK_H_

#include "rill/storage/on_disk/mapped_rows.h"
#include "rill/storage/on_disk/row_commits.h"
#include "rill/storage/on_disk/row_positions.h"

namespace rill::storage_internal {

// The rows and cursors of a storage, in files that outlive it. A
// storage in memory has none, and need not bring the files along: only
// StorageDirectory is one.
//
// The storage calls, around every change of bytes: Reserve and Announce (may
// fail, nothing has changed), its copies, Commit.
//
// Thread-safety: thread-compatible; the storage's locks guard it.
class RowsOnDisk : public MappedRows, public RowCommits, public RowPositions {};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ON_DISK_ROWS_ON_DISK_H_
