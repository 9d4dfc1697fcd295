// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "nanobind/nanobind.h"
#include "nanobind/stl/shared_ptr.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/live_slots.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/status.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// Reads the options that all storages have.
template <typename Options>
OptionReader CommonOf(const char* storage, const nb::dict& given,
                      Options* options) {
  OptionReader reader = OptionReader::OfCopy(storage, given);
  reader.Read("max_size", &options->capacity)
      .Read("lanes", &options->lanes)
      .Read("priority_key", &options->event_keys.priority);
  return reader;
}

std::shared_ptr<Storage> Dense(const nb::dict& given) {
  DenseStorage::Options options;
  CommonOf("LazyTensorStorage", given, &options).CheckAllRead();
  return Value(DenseStorage::Create(options));
}

// `opens`: what is there already.
std::unique_ptr<Storage> MakeMemmap(OptionReader* reader,
                                    MemmapStorage::Options options) {
  bool opens = false;
  reader->Read("scratch_dir", &options.directory).Read("opens", &opens);
  reader->CheckAllRead();
  return Value(opens ? MemmapStorage::Open(options)
                     : MemmapStorage::Create(options));
}

std::shared_ptr<Storage> Memmap(const nb::dict& given) {
  MemmapStorage::Options options;
  OptionReader reader = CommonOf("LazyMemmapStorage", given, &options);
  return MakeMemmap(&reader, std::move(options));
}

std::shared_ptr<Storage> List(const nb::dict& given) {
  ListStorage::Options options;
  CommonOf("ListStorage", given, &options)
      .Read("ragged_keys", &options.ragged_leaves)
      .Read("mask_key", &options.mask_key)
      .CheckAllRead();
  return Value(ListStorage::Create(std::move(options)));
}

std::shared_ptr<Storage> Compressed(const nb::dict& given) {
  CompressedStorage::Options options;
  CommonOf("CompressedListStorage", given, &options)
      .Read("compression_level", &options.level)
      .CheckAllRead();
  return Value(CompressedStorage::Create(options));
}

std::shared_ptr<Storage> Tiered(const nb::dict& given) {
  MemmapStorage::Options below;
  TieredStorage::Options options;
  OptionReader reader = CommonOf("TieredStorage", given, &below);
  reader.Read("fast_size", &options.fast_capacity).Read("fill", &options.fill);
  options.below = MakeMemmap(&reader, std::move(below));
  return Value(TieredStorage::Create(std::move(options)));
}

}  // namespace

void BindStorages(nb::module_& module) {
  nb::class_<Storage>(module, "Storage")
      .def_prop_ro("capacity", &Storage::capacity)
      .def_prop_ro("lanes",
                   [](const Storage& storage) { return storage.lanes().count; })
      .def("live_slots",
           [](const Storage& storage) { return LiveSlots(storage); })
      .def("__len__", &Storage::size);
  module.def("dense_storage", &Dense);
  module.def("memmap_storage", &Memmap);
  module.def("list_storage", &List);
  module.def("compressed_storage", &Compressed);
  module.def("tiered_storage", &Tiered);
}

}  // namespace rill::python
