// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_STATE_SAVED_STATE_H_
#define RILL_BASE_STATE_SAVED_STATE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill {

// The state that a part saves: a type, a version, and values by name. Parts
// that know no tensors save this; tensordict/state/state_dict.h is the same
// with tensors. docs/formats/saved_state.md has the bytes.
//
// A reader asks for values by name. A value that is missing or of another kind
// is FAILED_PRECONDITION and names type, value, got and wanted. Values that
// nobody asks for are ignored.
//
// Thread-safety: thread-compatible.
// Cost: look-up O(values of the part), which are few; copies copy the lists.
//
// Example (SavedStateTest.Example runs it):
//   SavedState state("Counter", /*version=*/1);
//   state.Set("count", int64_t{7});
//   RILL_ASSIGN_OR_RETURN(const int64_t count, state.Get<int64_t>("count"));
class SavedState {
 public:
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                             std::vector<double>, std::vector<SavedState>>;
  struct Field;

  // It has no type.
  SavedState();
  SavedState(absl::string_view type, int64_t version);
  // All of these are in the .cc, where Field is complete.
  SavedState(const SavedState&);
  SavedState& operator=(const SavedState&);
  SavedState(SavedState&&) noexcept;
  SavedState& operator=(SavedState&&) noexcept;
  ~SavedState();

  const std::string& type() const { return type_; }
  int64_t version() const { return version_; }
  const std::vector<Field>& fields() const ABSL_ATTRIBUTE_LIFETIME_BOUND {
    return fields_;
  }

  // Replaces a value of this name. Names are not empty.
  void Set(absl::string_view name, Value value);
  void SetPart(absl::string_view name, SavedState part);

  // FAILED_PRECONDITION names both sides where this is the state of another
  // type, or of a version above `max_version`.
  absl::Status CheckType(absl::string_view type, int64_t max_version) const;

  // T: a kind of value but for lists, which Ints and Doubles give in place.
  template <typename T>
  absl::StatusOr<T> Get(absl::string_view name) const {
    const auto value = Find<T>(name);
    if (!value.ok()) return value.status();
    return **value;
  }
  // DATA_LOSS where the list is not of `width` numbers for each of something.
  absl::StatusOr<absl::Span<const int64_t>> Ints(absl::string_view name,
                                                 size_t width = 1) const
      ABSL_ATTRIBUTE_LIFETIME_BOUND;
  absl::StatusOr<absl::Span<const double>> Doubles(absl::string_view name) const
      ABSL_ATTRIBUTE_LIFETIME_BOUND;
  absl::StatusOr<absl::Span<const SavedState>> Parts(
      absl::string_view name) const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  // One part, after CheckType.
  absl::StatusOr<const SavedState*> Part(
      absl::string_view name, absl::string_view type,
      int64_t max_version) const ABSL_ATTRIBUTE_LIFETIME_BOUND;

  // A part's LoadState returns the first for a value that no state can have,
  // the second for one of something else.
  absl::Status Damaged(absl::string_view what) const;
  absl::Status DoesNotFit(absl::string_view what) const;

  std::string Encode() const;
  // DATA_LOSS where the bytes are cut, changed or no saved state.
  static absl::StatusOr<SavedState> Decode(absl::string_view bytes);
  // Whether bytes begin as a saved state does.
  static bool IsSavedState(absl::string_view bytes);

 private:
  template <typename T>
  absl::StatusOr<const T*> Find(absl::string_view name) const;

  std::string type_;
  int64_t version_ = 0;
  std::vector<Field> fields_;
};

struct SavedState::Field {
  std::string name;
  Value value;
};

extern template absl::StatusOr<const int64_t*> SavedState::Find(
    absl::string_view) const;
extern template absl::StatusOr<const double*> SavedState::Find(
    absl::string_view) const;
extern template absl::StatusOr<const std::string*> SavedState::Find(
    absl::string_view) const;

}  // namespace rill

#endif  // RILL_BASE_STATE_SAVED_STATE_H_
