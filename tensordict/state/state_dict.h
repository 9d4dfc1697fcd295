// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_STATE_STATE_DICT_H_
#define RILL_TENSORDICT_STATE_STATE_DICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/state/saved_state.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The saved state of a part that has tensors: a dictionary with the entries
// `type`, a text, and `version`, a number, beside the part's own. So every
// format of dictionaries keeps it. base/state/saved_state.h is the same without
// tensors. docs/formats/saved_state.md has both.

// Elements of T; those of bool are 0 or 1.
template <typename T>
using StateList =
    std::vector<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

// A text as an entry: the JSON string of it.
NonTensor JsonString(absl::string_view text);

// Makes such a dictionary. The first error is kept, and comes back at the end.
// INVALID_ARGUMENT for an entry of the part's own that is called "type" or
// "version": no reader would open the state.
// Thread-safety: thread-compatible.
//
// Example (StateDictTest.Example runs it):
//   StateWriter state("TimeLimit", /*version=*/1);
//   state.Set("limit", int64_t{500});
//   state.List<int64_t>("steps", {3, 4}, {2});
//   RILL_ASSIGN_OR_RETURN(const TensorDict dict, std::move(state).Finish());
class StateWriter {
 public:
  StateWriter(absl::string_view type, int64_t version,
              const Shape& batch_shape = {});

  // A tensor of shape [].
  template <typename T>
  void Set(absl::string_view key, T value) {
    Entry(key, Tensor::From<T>({value}, Shape({})));
  }
  // The values as a tensor of this shape.
  template <typename T>
  void List(absl::string_view key, const StateList<T>& values,
            const Shape& shape) {
    Bytes(key, DTypeOf<T>, values.data(), values.size(), shape);
  }
  // A tensor or a dictionary; also the error of what should have made it.
  template <typename T>
  void Entry(absl::string_view key, absl::StatusOr<T> value) {
    status_.Update(CheckKey(key));
    if (!status_.ok()) return;
    status_ = value.ok() ? dict_.Set(key, *std::move(value)) : value.status();
  }

  absl::StatusOr<TensorDict> Finish() &&;

 private:
  static absl::Status CheckKey(absl::string_view key);
  void Bytes(absl::string_view key, DType dtype, const void* values,
             size_t count, const Shape& shape);

  TensorDict dict_;
  absl::Status status_;
};

// Reads it. An entry that is missing, or is of another dtype or shape, is
// FAILED_PRECONDITION and names type, entry, got and wanted. Entries that
// nobody asks for are ignored, but by CheckNothingElse.
// Thread-safety: one thread. `dict` must outlive it.
class StateReader {
 public:
  // FAILED_PRECONDITION names both sides where the state is of another type, or
  // of a version above `max_version`. One without `type` is of version 0: it
  // was saved before states had types.
  static absl::StatusOr<StateReader> Open(
      absl::string_view type, int64_t max_version,
      const TensorDict& dict ABSL_ATTRIBUTE_LIFETIME_BOUND);

  int64_t version() const { return version_; }
  const TensorDict& dict() const { return dict_; }

  template <typename T>
  absl::StatusOr<T> Get(absl::string_view key) const {
    const absl::StatusOr<StateList<T>> values = List<T>(key, Shape({}));
    if (!values.ok()) return values.status();
    return static_cast<T>(values->front());
  }
  // The elements of a tensor of this shape; without one, of any rank 1.
  template <typename T>
  absl::StatusOr<StateList<T>> List(
      absl::string_view key,
      const std::optional<Shape>& shape = std::nullopt) const {
    const absl::StatusOr<Tensor> tensor = Leaf(key, DTypeOf<T>, shape);
    if (!tensor.ok()) return tensor.status();
    const T* const values = tensor->data<T>();
    return StateList<T>(values, values + tensor->num_elements());
  }
  // A tensor in host memory, contiguous.
  absl::StatusOr<Tensor> Leaf(absl::string_view key, DType dtype,
                              const std::optional<Shape>& shape) const;
  absl::StatusOr<const TensorDict*> Dict(absl::string_view key) const;
  // The text of which JsonString made the entry.
  absl::StatusOr<std::string> Text(absl::string_view key) const;

  // FAILED_PRECONDITION names an entry that nobody has asked for.
  absl::Status CheckNothingElse() const;
  // FAILED_PRECONDITION of the part's LoadState.
  absl::Status DoesNotFit(absl::string_view what) const;

 private:
  StateReader(absl::string_view type, int64_t version, const TensorDict& dict)
      : type_(type), version_(version), dict_(dict) {}

  std::string type_;
  int64_t version_;
  const TensorDict& dict_;
  mutable std::vector<std::string> asked_;  // Keys, as far as this level.
};

// A state without tensors as such a dictionary, for tools that show it. A list
// is a tensor of rank 1, a part a dictionary, several parts are `0`, `1`, ...
// in one.
absl::StatusOr<TensorDict> ToDict(const SavedState& state);

}  // namespace rill

#endif  // RILL_TENSORDICT_STATE_STATE_DICT_H_
