// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_BATCH_H_
#define RILL_PYTHON_BINDINGS_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "rill/python/bindings/array.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::python {

// Dictionaries of arrays as batches and back. A dictionary may hold others. Its
// keys are texts as in tensordict/key.h, or tuples of components: "next/reward"
// and ("next", "reward") are the entry "reward" of the dictionary "next".
//
// Thread-safety: all calls hold the interpreter's lock.

// A batch on its way in, in memory of its own or in that of the arrays.
struct InputBatch {
  TensorDict rows;
  std::vector<Tensor> leaves;  // Where it is staged: those of `rows`, in order.
};

// The batches of one buffer. Small ones of the known schema are copied into
// memory that is used again: a look-up and a copy a leaf. Others are views of
// the arrays.
class InputReader {
 public:
  // `batch_rank`: 1 for [time], 2 for [lanes, time].
  explicit InputReader(int batch_rank) : batch_rank_(batch_rank) {}

  // Before the first batch of this reader's, plain numbers take the dtypes of
  // the rows that are stored. Without effect where a schema is known.
  void Expect(const TensorDictSpec& spec);
  bool has_schema() const { return !levels_.empty(); }

  // is_step: arrays lack the dimension of time, which is 1 then. Throws
  // INVALID_ARGUMENT with the key.
  std::unique_ptr<InputBatch> Read(PyObject* dict, bool is_step);
  // The arrays of a batch themselves, to be written: none is copied or made.
  // Throws INVALID_ARGUMENT with the key of one that cannot.
  TensorDict ReadPlaces(PyObject* dict);
  // A batch that the buffer has taken: its schema is known from now on, and its
  // memory may be used again.
  void Accept(PyObject* dict, std::unique_ptr<InputBatch> batch);

 private:
  struct Entry {
    nanobind::object key;
    int level = -1;  // That of a dictionary; -1: a leaf.
    int leaf = -1;
  };
  struct Leaf {
    std::string key;
    DType dtype;
    Shape row;
    size_t row_bytes;
  };

  std::unique_ptr<InputBatch> ReadStaged(PyObject* dict, bool is_step);
  std::unique_ptr<InputBatch> ReadViews(PyObject* dict, bool is_step,
                                        bool as_places);
  // The leaves of a dictionary that has just the known keys; false otherwise.
  bool Find(PyObject* dict, size_t level, nanobind::object* leaves) const;
  // A copy: a conversion may let another thread learn.
  std::optional<Leaf> Known(absl::string_view key) const;
  std::unique_ptr<InputBatch> Staged(const Shape& batch_shape);
  int LearnLevel(PyObject* dict, const std::string& prefix,
                 const InputBatch& batch);

  const int batch_rank_;
  std::vector<std::vector<Entry>> levels_;  // Empty: no schema yet.
  std::vector<Leaf> leaves_;  // Those of levels_, or what is expected.
  std::vector<std::unique_ptr<InputBatch>> spare_;
};

// A batch on its way out; arrays hold it.
struct OutputBatch {
  TensorDict rows;
};

// The batches of one buffer. The memory of a batch serves again once no array
// shows it, not one that a function transform was given either.
class OutputMaker {
 public:
  // A batch that no array shows, for one call.
  std::shared_ptr<OutputBatch> Take();
  // A dictionary of arrays that show it. It is remembered.
  nanobind::object Make(const std::shared_ptr<OutputBatch>& batch);
  // The newest of Make whose `key` has these numbers; null without any.
  std::shared_ptr<OutputBatch> WithNumbers(absl::string_view key,
                                           const ArrayBytes& numbers) const;

 private:
  struct Leaf {
    std::string key;
    size_t level;
    nanobind::object name;
    ShapeTuple shape;
  };
  struct Level {
    size_t parent;
    nanobind::object name;
  };
  struct Layout {
    std::vector<Level> levels;  // The first is the batch itself.
    std::vector<Leaf> leaves;
  };

  static std::shared_ptr<Layout> LayoutOf(const TensorDict& rows);
  // Null where the batch has other leaves than those of the layout.
  static nanobind::object TryMake(const std::shared_ptr<OutputBatch>& batch,
                                  Layout* layout);

  // That of the last batch. A call holds the one that it uses: where it makes
  // objects, Python may let another thread in, which replaces it.
  std::shared_ptr<Layout> layout_;
  std::vector<std::shared_ptr<OutputBatch>> made_;  // Newest last.
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_BATCH_H_
