// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nanobind/nanobind.h"
#include "nanobind/stl/shared_ptr.h"
#include "nanobind/stl/string.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/status.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

std::shared_ptr<Storage> Dense(int64_t capacity, int64_t lanes) {
  return Value(DenseStorage::Create({.capacity = capacity, .lanes = lanes}));
}

std::shared_ptr<Storage> Memmap(const std::string& directory, int64_t capacity,
                                int64_t lanes, bool opens) {
  const MemmapStorage::Options options = {
      .directory = directory, .capacity = capacity, .lanes = lanes};
  return Value(opens ? MemmapStorage::Open(options)
                     : MemmapStorage::Create(options));
}

// The slots of the rows that are there, lane by lane.
nb::object LiveSlots(const Storage& storage) {
  const Lanes& lanes = storage.lanes();
  std::vector<Slot> live;
  const std::vector<Cursor> cursors = storage.cursors();
  for (size_t lane = 0; lane < cursors.size(); ++lane) {
    const int64_t count = std::min(cursors[lane].written, lanes.capacity);
    for (int64_t i = 0; i < count; ++i) {
      live.push_back(lanes.SlotOf(static_cast<int64_t>(lane), i));
    }
  }
  const Tensor slots =
      Value(Tensor::Empty(DType::kInt64, {static_cast<int64_t>(live.size())}));
  std::copy(live.begin(), live.end(), slots.data<int64_t>());
  return ArrayOf(slots, "index");
}

}  // namespace

void BindStorages(nb::module_& module) {
  nb::class_<Storage>(module, "Storage")
      .def_prop_ro("capacity", &Storage::capacity)
      .def_prop_ro("lanes",
                   [](const Storage& storage) { return storage.lanes().count; })
      .def("live_slots", &LiveSlots)
      .def("__len__", &Storage::size);
  module.def("dense_storage", &Dense, "capacity"_a, "lanes"_a = 1);
  module.def("memmap_storage", &Memmap, "directory"_a, "capacity"_a,
             "lanes"_a = 1, "opens"_a = false);
}

}  // namespace rill::python
