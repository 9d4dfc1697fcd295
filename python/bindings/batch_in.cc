// SPDX-License-Identifier: Apache-2.0
// InputReader: dictionaries of arrays as batches.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nanobind/nanobind.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/array.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/status.h"
#include "rill/tensordict/key.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// Up to here a copy is cheaper than the views.
constexpr size_t kMaxStagedBytes = 128 << 10;
// A dictionary that holds itself has no end.
constexpr int kMaxDepth = 64;
// Batches that a buffer keeps, for threads that write at once.
constexpr size_t kMaxSpare = 4;

std::string_view TextOf(PyObject* key) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(key, &size);
  CheckPython(text != nullptr);
  return {text, static_cast<size_t>(size)};
}

// The text of a key of a dictionary.
std::string KeyText(PyObject* key, absl::string_view prefix) {
  if (PyUnicode_Check(key)) {
    const std::string_view text = TextOf(key);
    return absl::StrCat(prefix, absl::string_view(text.data(), text.size()));
  }
  if (PyTuple_Check(key) && PyTuple_Size(key) > 0) {
    std::string text(prefix);
    for (Py_ssize_t i = 0; i < PyTuple_Size(key); ++i) {
      PyObject* const part = PyTuple_GetItem(key, i);
      if (i > 0) text += '/';
      text += KeyText(part, "");
    }
    return text;
  }
  throw StatusError{InvalidArgument("key: got ", nb::repr(key).c_str(),
                                    ", want a text or a tuple of texts")};
}

struct Found {
  std::string key;
  nb::object object;
};

void Collect(PyObject* dict, const std::string& prefix, int depth,
             std::vector<Found>* found) {
  if (depth > kMaxDepth) {
    throw StatusError{
        InvalidArgument("batch: dictionaries inside one another: got ", depth,
                        ", want at most ", kMaxDepth)};
  }
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t place = 0;
  while (PyDict_Next(dict, &place, &key, &value) != 0) {
    std::string text = KeyText(key, prefix);
    if (PyDict_Check(value)) {
      Collect(value, absl::StrCat(text, "/"), depth + 1, found);
    } else {
      found->push_back({std::move(text), nb::borrow(value)});
    }
  }
}

bool IsNumber(PyObject* object) {
  return PyFloat_Check(object) || PyLong_Check(object);
}

// The leading sizes of an array, with the dimension of a step's time.
Shape BatchShape(const Shape& array, int batch_rank, bool is_step) {
  const int lead = batch_rank - (is_step ? 1 : 0);
  Shape batch = array.Prefix(lead);
  return is_step ? batch.WithDim(lead, 1) : batch;
}

}  // namespace

void InputReader::Expect(const TensorDictSpec& spec) {
  if (has_schema()) return;
  leaves_.clear();
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    leaves_.push_back({leaf.key, leaf.spec.dtype, leaf.spec.shape, 0});
  }
}

std::unique_ptr<InputBatch> InputReader::Read(PyObject* dict, bool is_step) {
  if (has_schema()) {
    if (auto batch = ReadStaged(dict, is_step)) return batch;
  }
  return ReadViews(dict, is_step, /*as_places=*/false);
}

TensorDict InputReader::ReadPlaces(PyObject* dict) {
  return std::move(
      ReadViews(dict, /*is_step=*/false, /*as_places=*/true)->rows);
}

bool InputReader::Find(PyObject* dict, size_t level, nb::object* leaves) const {
  if (!PyDict_Check(dict)) return false;
  const std::vector<Entry>& entries = levels_[level];
  if (PyDict_Size(dict) != static_cast<Py_ssize_t>(entries.size())) {
    return false;
  }
  for (const Entry& entry : entries) {
    PyObject* value = PyDict_GetItemWithError(dict, entry.key.ptr());
    if (value == nullptr) {
      CheckPython(PyErr_Occurred() == nullptr);
      return false;
    }
    if (entry.level < 0) {
      leaves[entry.leaf] = nb::borrow(value);
    } else if (!Find(value, static_cast<size_t>(entry.level), leaves)) {
      return false;
    }
  }
  return true;
}

std::unique_ptr<InputBatch> InputReader::Staged(const Shape& batch_shape) {
  std::unique_ptr<InputBatch> batch;
  for (size_t i = spare_.size(); i-- > 0;) {
    if (spare_[i]->rows.batch_shape() != batch_shape) continue;
    batch = std::move(spare_[i]);
    spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(i));
    // A transform that keeps the last batch's rows keeps its memory.
    for (const Tensor& leaf : batch->leaves) {
      if (leaf.buffer().use_count() != 2) return Staged(batch_shape);
    }
    return batch;
  }
  batch = std::make_unique<InputBatch>();
  batch->rows = TensorDict(batch_shape);
  for (const Leaf& leaf : leaves_) {
    batch->leaves.push_back(
        Value(Tensor::Empty(leaf.dtype, batch_shape.Concat(leaf.row))));
    Check(batch->rows.Set(leaf.key, batch->leaves.back()));
  }
  return batch;
}

std::unique_ptr<InputBatch> InputReader::ReadStaged(PyObject* dict,
                                                    bool is_step) {
  // A conversion may run Python code, which may change the dictionary.
  absl::InlinedVector<nb::object, 32> objects(leaves_.size());
  if (!Find(dict, 0, objects.data())) return nullptr;
  const int lead = batch_rank_ - (is_step ? 1 : 0);
  std::unique_ptr<InputBatch> batch;
  int64_t rows = 0;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    PyObject* const object = objects[i].ptr();
    ArrayBytes bytes;
    bytes.Take(object, leaf.key, leaf.dtype);
    if (bytes.dtype() != leaf.dtype) return nullptr;
    if (batch == nullptr) {
      if (bytes.rank() < lead) return nullptr;
      const Shape shape =
          BatchShape(bytes.shape(leaf.key), batch_rank_, is_step);
      rows = shape.num_elements();
      size_t row_bytes = 0;
      for (const Leaf& each : leaves_) row_bytes += each.row_bytes;
      if (row_bytes * static_cast<size_t>(rows) > kMaxStagedBytes) {
        return nullptr;
      }
      batch = Staged(shape);
    }
    bool fits = bytes.rank() == lead + leaf.row.rank();
    for (int d = 0; fits && d < bytes.rank(); ++d) {
      fits = bytes.size(d) ==
             (d < lead ? batch->rows.batch_shape()[d] : leaf.row[d - lead]);
    }
    const size_t size = leaf.row_bytes * static_cast<size_t>(rows);
    // A number is the row of one element, whatever its shape.
    if (!fits && !(IsNumber(object) && bytes.size_bytes() == size)) {
      return nullptr;
    }
    std::memcpy(batch->leaves[i].raw_data(), bytes.data(), size);
  }
  return batch;
}

std::optional<InputReader::Leaf> InputReader::Known(
    absl::string_view key) const {
  for (const Leaf& leaf : leaves_) {
    if (leaf.key == key) return leaf;
  }
  return std::nullopt;
}

std::unique_ptr<InputBatch> InputReader::ReadViews(PyObject* dict, bool is_step,
                                                   bool as_places) {
  if (!PyDict_Check(dict)) {
    throw StatusError{InvalidArgument(
        "batch: got ",
        nb::repr(reinterpret_cast<PyObject*>(Py_TYPE(dict))).c_str(),
        ", want a dict of arrays")};
  }
  std::vector<Found> found;
  Collect(dict, "", /*depth=*/1, &found);
  if (found.empty()) {
    throw StatusError{
        InvalidArgument("batch: got a dict without arrays, want one or more")};
  }
  const int lead = batch_rank_ - (is_step ? 1 : 0);
  auto batch = std::make_unique<InputBatch>();
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string& key = found[i].key;
    const std::optional<Leaf> known = Known(key);
    ArrayBytes bytes;
    if (as_places) {
      bytes.TakePlace(found[i].object.ptr(), key);
    } else {
      bytes.Take(
          found[i].object.ptr(), key,
          known.has_value() ? std::optional(known->dtype) : std::nullopt);
    }
    Tensor tensor = bytes.MoveToTensor(key);
    if (tensor.rank() < lead) {
      throw StatusError{InvalidArgument(
          "\"", key, "\": shape: got ", tensor.shape().ToString(), ", want ",
          lead, lead == 1 ? " leading dimension" : " leading dimensions",
          batch_rank_ == 1 ? " of time" : " of lanes and time",
          "; add() takes one step")};
    }
    if (is_step) tensor = Value(tensor.Unsqueeze(lead));
    // A number is the row of one element, whatever its shape.
    if (is_step && lead == 0 && known.has_value() &&
        IsNumber(found[i].object.ptr()) && known->row.num_elements() == 1) {
      tensor = Value(tensor.ViewAs(known->row.WithDim(0, 1)));
    }
    if (i == 0) {
      batch->rows = TensorDict(tensor.shape().Prefix(batch_rank_));
    }
    if (batch->rows.Contains(key)) {
      throw StatusError{InvalidArgument(
          "\"", key,
          "\": got it twice, want each key once, in one of its forms")};
    }
    Check(batch->rows.Set(key, std::move(tensor)));
  }
  return batch;
}

int InputReader::LearnLevel(PyObject* dict, const std::string& prefix,
                            const InputBatch& batch) {
  const auto level = static_cast<int>(levels_.size());
  levels_.emplace_back();
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t place = 0;
  while (PyDict_Next(dict, &place, &key, &value) != 0) {
    const std::string text = KeyText(key, prefix);
    Entry entry = {.key = nb::borrow(key)};
    if (PyDict_Check(value)) {
      // The dictionary has changed, and may hold itself by now.
      if (batch.rows.FindDict(text) == nullptr) continue;
      entry.level = LearnLevel(value, absl::StrCat(text, "/"), batch);
    } else {
      const Tensor* tensor = batch.rows.Find(text);
      if (tensor == nullptr) continue;  // The dictionary has changed.
      const Shape row = tensor->shape().Suffix(batch_rank_);
      entry.leaf = static_cast<int>(leaves_.size());
      leaves_.push_back({text, tensor->dtype(), row,
                         static_cast<size_t>(row.num_elements() *
                                             DTypeSize(tensor->dtype()))});
    }
    levels_[static_cast<size_t>(level)].push_back(std::move(entry));
  }
  return level;
}

void InputReader::Accept(PyObject* dict, std::unique_ptr<InputBatch> batch) {
  if (!has_schema()) {
    leaves_.clear();
    LearnLevel(dict, "", *batch);
  }
  if (!batch->leaves.empty() && spare_.size() < kMaxSpare) {
    spare_.push_back(std::move(batch));
  }
}

}  // namespace rill::python
