// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/memmap_storage.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/dense_storage_impl.h"
#include "rill/storage/directory/storage_description.h"
#include "rill/storage/directory/storage_directory.h"

namespace rill {
namespace {

using storage_internal::DenseStorageImpl;
using storage_internal::StorageDescription;
using storage_internal::StorageDirectory;

absl::Status CheckPlace(absl::string_view caller,
                        const MemmapStorage::Options& options) {
  if (!options.device.is_cpu()) {
    return InvalidArgument(
        caller, ": Options::device: got ", options.device.ToString(),
        ", want cpu, as files are mapped for the CPU; for rows on a device use "
        "DenseStorage there, for batches on a device a ToDevice transform "
        "behind this storage, for both TieredStorage");
  }
  if (options.hold_timeout.has_value() &&
      *options.hold_timeout < absl::ZeroDuration()) {
    return InvalidArgument(caller, ": Options::hold_timeout: got ",
                           absl::FormatDuration(*options.hold_timeout),
                           ", want >= 0, or none");
  }
  if (!options.directory.empty()) return absl::OkStatus();
  return InvalidArgument(caller, ": Options::directory: got \"\", want a path");
}

absl::StatusOr<std::unique_ptr<Storage>> Make(
    const DenseStorage::Options& options,
    std::unique_ptr<StorageDirectory> directory,
    std::optional<absl::Duration> hold_timeout) {
  if (hold_timeout.has_value()) directory->GoByHolds();
  auto storage = std::make_unique<DenseStorageImpl>(
      options, std::move(directory),
      hold_timeout.value_or(absl::ZeroDuration()));
  RILL_RETURN_IF_ERROR(storage->Init(options.spec));
  return storage;
}

// FAILED_PRECONDITION where options that are given are not the directory's:
// then the caller has another storage in mind than the one it names.
absl::Status CheckAgrees(absl::string_view caller,
                         const MemmapStorage::Options& options,
                         const StorageDescription& found) {
  const auto other = [&](absl::string_view what, int64_t got, int64_t want,
                         absl::string_view advice) {
    return FailedPrecondition(caller, ": Options::", what, ": got ", want,
                              ", want that of \"", options.directory, "\", ",
                              got, advice);
  };
  if (options.capacity != 0) {
    if (options.lanes != found.lanes.count) {
      return other("lanes", found.lanes.count, options.lanes,
                   "; where Options::capacity is given, give both or neither");
    }
    if (options.capacity != found.lanes.num_slots()) {
      return other("capacity", found.lanes.num_slots(), options.capacity, "");
    }
  }
  if (options.spec.empty()) return absl::OkStatus();
  const std::string difference = LayoutDifference(options.spec, found.spec);
  if (difference.empty()) return absl::OkStatus();
  return FailedPrecondition(caller, ": Options::spec: ", difference,
                            ", as in \"", options.directory, "\"");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Storage>> MemmapStorage::Create(
    const Options& options) {
  constexpr absl::string_view kCaller = "MemmapStorage::Create";
  RILL_RETURN_IF_ERROR(CheckPlace(kCaller, options));
  const DenseStorage::Options rows = {.capacity = options.capacity,
                                      .lanes = options.lanes,
                                      .layout = options.layout,
                                      .order = options.order,
                                      .spec = options.spec,
                                      .event_keys = options.event_keys};
  RILL_RETURN_IF_ERROR(storage_internal::CheckOptions(kCaller, rows));
  RILL_ASSIGN_OR_RETURN(auto directory,
                        StorageDirectory::Create(kCaller, options.directory));
  return Make(rows, std::move(directory), options.hold_timeout);
}

absl::StatusOr<std::unique_ptr<Storage>> MemmapStorage::Open(
    const Options& options) {
  constexpr absl::string_view kCaller = "MemmapStorage::Open";
  RILL_RETURN_IF_ERROR(CheckPlace(kCaller, options));
  RILL_ASSIGN_OR_RETURN(auto directory,
                        StorageDirectory::Open(kCaller, options.directory));
  const StorageDescription& found = directory->description();
  RILL_RETURN_IF_ERROR(CheckAgrees(kCaller, options, found));
  const DenseStorage::Options rows = {.capacity = found.lanes.num_slots(),
                                      .lanes = found.lanes.count,
                                      .layout = found.layout,
                                      .order = found.order,
                                      .spec = found.spec,
                                      .event_keys = options.event_keys};
  return Make(rows, std::move(directory), options.hold_timeout);
}

}  // namespace rill
