// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>

#include "nanobind/nanobind.h"
#include "nanobind/stl/shared_ptr.h"
#include "nanobind/stl/string.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/status.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"

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

}  // namespace

void BindStorages(nb::module_& module) {
  nb::class_<Storage>(module, "Storage")
      .def_prop_ro("capacity", &Storage::capacity)
      .def_prop_ro("lanes",
                   [](const Storage& storage) { return storage.lanes().count; })
      .def("__len__", &Storage::size);
  module.def("dense_storage", &Dense, "capacity"_a, "lanes"_a = 1);
  module.def("memmap_storage", &Memmap, "directory"_a, "capacity"_a,
             "lanes"_a = 1, "opens"_a = false);
}

}  // namespace rill::python
