// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DOC_EXAMPLES_CONTEXT_H_
#define RILL_STORAGE_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/storage/budget/byte_budget.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/live_rows/live_rows.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const std::string directory;
extern const TensorDict batch;
extern const TensorDict first;
extern const TensorDict second;
extern const std::vector<TensorDict> steps;
extern const TensorDictSpec spec;
extern const StreamHandle simulator;
extern const std::vector<Slot> slots;
extern TensorDict rows;
extern WriteObserver& index;
extern std::unique_ptr<Storage> memmap;
extern const std::unique_ptr<Storage> storage;
extern std::vector<std::unique_ptr<Storage>> members;
std::vector<StorageCase> DenseCases();

}  // namespace rill::doc_examples

#endif  // RILL_STORAGE_DOC_EXAMPLES_CONTEXT_H_
