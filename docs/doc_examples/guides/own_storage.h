// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_STORAGE_H_
#define RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/durable.h"
#include "rill/storage/row_reader.h"
#include "rill/storage/row_writer.h"
#include "rill/storage/slot_lease.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

// The storage that docs/extending.md shows.
std::unique_ptr<rill::Storage> MakeCounted(std::shared_ptr<rill::Storage> inner,
                                           std::atomic<int64_t>* rows);

#endif  // RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_STORAGE_H_
