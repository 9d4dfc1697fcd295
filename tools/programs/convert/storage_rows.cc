// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/convert/storage_rows.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/tdz_archive.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/row_reader.h"
#include "rill/tensors/shape.h"

namespace rill::convert {
namespace {

using inspect::Form;

// Rows in memory at once where a directory is filled.
constexpr int64_t kPieceRows = 4096;

// Lane after lane, the oldest first.
std::vector<Slot> SlotsOf(const LiveSlots& live) {
  std::vector<Slot> slots(live.size());
  for (int64_t i = 0; i < live.size(); ++i) slots[i] = live.Nth(i);
  return slots;
}

Shape ShapeOf(const Lanes& lanes, absl::Span<const Slot> slots) {
  const auto rows = static_cast<int64_t>(slots.size());
  if (lanes.count == 1 || rows % lanes.count != 0) return Shape({rows});
  const int64_t steps = rows / lanes.count;
  // Lanes hold as many rows each only if every run of `steps` rows is of the
  // next lane.
  for (int64_t i = 0; i < rows; ++i) {
    if (lanes.LaneOf(slots[i]) != i / steps) return Shape({rows});
  }
  return Shape({lanes.count, steps});
}

// For forms that are one file.
absl::Status SaveAs(const TensorDict& dict, const std::string& out, Form to) {
  return to == Form::kTdz ? SaveTdz(dict, out) : SaveConsolidated(dict, out);
}

absl::Status FillDirectory(const RowReader& storage,
                           absl::Span<const Slot> slots, const Shape& shape,
                           const std::string& directory) {
  RILL_ASSIGN_OR_RETURN(
      const TensorDict files,
      CreateMemmapDirectory(storage.spec(), shape, directory));
  const auto rows = static_cast<int64_t>(slots.size());
  RILL_ASSIGN_OR_RETURN(const TensorDict flat, files.Reshape({rows}));
  TensorDict read;
  for (int64_t begin = 0; begin < rows; begin += kPieceRows) {
    const int64_t end = std::min(begin + kPieceRows, rows);
    RILL_ASSIGN_OR_RETURN(TensorDict piece, flat.Slice(0, begin, end));
    RILL_RETURN_IF_ERROR(
        storage.Read(slots.subspan(begin, end - begin), &read));
    RILL_RETURN_IF_ERROR(piece.CopyFrom(read));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsStorage(const std::string& path) {
  return PathExists(JoinPath(path, "rill.commit"));
}

absl::StatusOr<std::string> SaveRows(const std::string& in,
                                     const std::string& out, Form to) {
  RILL_ASSIGN_OR_RETURN(const auto storage,
                        MemmapStorage::Open({.directory = in}));
  LiveSlots live;
  // An observer learns the live rows when it is added, in one event.
  RILL_RETURN_IF_ERROR(storage->AddObserver(&live));
  const std::vector<Slot> slots = SlotsOf(live);
  storage->RemoveObserver(&live);
  if (slots.empty()) {
    return InvalidArgument("convert: \"", in, "\": got a storage without rows");
  }
  const Shape shape = ShapeOf(storage->lanes(), slots);
  if (to == Form::kDirectory) {
    RILL_RETURN_IF_ERROR(ReplaceDirectory(out, [&](const std::string& fresh) {
      return FillDirectory(*storage, slots, shape, fresh);
    }));
  } else {
    TensorDict rows;
    RILL_RETURN_IF_ERROR(storage->Read(slots, &rows));
    RILL_ASSIGN_OR_RETURN(rows, rows.Reshape(shape));
    RILL_RETURN_IF_ERROR(SaveAs(rows, out, to));
  }
  return absl::StrCat(
      "batch ", shape.ToString(), ", ", storage->spec().leaves().size(),
      " tensors, ",
      static_cast<int64_t>(slots.size()) * storage->MemoryUsage().row,
      " bytes");
}

absl::Status MakeStorage(const TensorDict& steps, const std::string& out,
                         StorageLayout layout) {
  const Shape& shape = steps.batch_shape();
  if ((shape.rank() != 1 && shape.rank() != 2) || shape.num_elements() == 0) {
    return InvalidArgument("convert: batch shape: got ", shape.ToString(),
                           ", want [T] or [L, T] of some steps for a storage");
  }
  if (PathExists(out)) {
    return FailedPrecondition("convert: \"", out,
                              "\": is there, want nothing; name another");
  }
  const absl::Status status = [&]() -> absl::Status {
    RILL_ASSIGN_OR_RETURN(
        const auto storage,
        MemmapStorage::Create({.directory = out,
                               .capacity = shape.num_elements(),
                               .lanes = shape.rank() == 1 ? 1 : shape[0],
                               .layout = layout,
                               .spec = TensorDictSpec::Of(steps)}));
    // A storage of just as many slots: one write fills it.
    RILL_RETURN_IF_ERROR(storage->Extend(steps).status());
    return storage->Sync();
  }();
  // Nothing was there before, so all of it is this call's.
  if (!status.ok()) RemoveAll(out).IgnoreError();
  return status;
}

}  // namespace rill::convert
