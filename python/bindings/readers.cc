// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "rill/python/bindings/arguments.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/live_slots.h"
#include "rill/python/bindings/status.h"
#include "rill/slots/slot.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/row_reader.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

// The rows of a memmap storage whose owner is another process.
class Reader {
 public:
  explicit Reader(const std::string& directory)
      : reader_(Value(MemmapStorage::OpenReader(directory))) {}

  nb::object Read(const nb::object& index) const {
    const std::vector<Slot> slots = SlotsOf("MemmapReader", index);
    const auto batch = std::make_shared<OutputBatch>();
    absl::Status status;
    {
      const Unlocked unlocked;
      status = reader_->Read(slots, &batch->rows);
    }
    Check(std::move(status));
    OutputMaker maker;
    return maker.Make(batch);
  }

  nb::object Live() const { return LiveSlots(*reader_); }

  int64_t size() const { return reader_->size(); }
  int64_t capacity() const { return reader_->capacity(); }
  int64_t lanes() const { return reader_->lanes().count; }

 private:
  std::unique_ptr<RowReader> reader_;
};

}  // namespace

void BindReaders(nb::module_& module) {
  nb::class_<Reader>(module, "MemmapReader")
      .def(nb::init<const std::string&>(), "directory"_a)
      .def("read", &Reader::Read, "index"_a)
      .def("live_slots", &Reader::Live)
      .def("__len__", &Reader::size)
      .def_prop_ro("capacity", &Reader::capacity)
      .def_prop_ro("lanes", &Reader::lanes);
}

}  // namespace rill::python
