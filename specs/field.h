// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_FIELD_H_
#define RILL_SPECS_FIELD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill {

// A string literal as a template argument.
template <size_t kSize>
struct FixedString {
  char text[kSize] = {};

  consteval FixedString(const char (&literal)[kSize]) {  // NOLINT: "key"
    for (size_t i = 0; i < kSize; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const { return {text, kSize - 1}; }
};

// The rows of a leaf whose element type and trailing shape are known. A plain
// pointer and a count: pass it by value.
// Thread-safety: thread-compatible; the bytes are the users' to synchronise.
// Indices are not checked.
template <typename T, int64_t... kDims>
class FieldView {
 public:
  // Elements of one row.
  static constexpr int64_t kRowSize = (int64_t{1} * ... * kDims);

  FieldView(T* data, int64_t rows) : data_(data), rows_(rows) {}

  T* data() const { return data_; }
  int64_t rows() const { return rows_; }
  // All elements in order.
  std::span<T> flat() const {
    return {data_, static_cast<size_t>(rows_ * kRowSize)};
  }
  // One row: an element where the trailing shape is [], else a span of all of
  // the row's elements, whose size the compiler knows.
  decltype(auto) operator[](int64_t row) const {
    if constexpr (sizeof...(kDims) == 0) {
      return (data_[row]);
    } else {
      return std::span<T, static_cast<size_t>(kRowSize)>(
          data_ + row * kRowSize, static_cast<size_t>(kRowSize));
    }
  }
  // One element: view(row, i, j, ...), an index for each trailing dimension.
  template <typename... Indices>
  requires(sizeof...(Indices) == sizeof...(kDims)) T& operator()(
      int64_t row, Indices... indices) const {
    int64_t at = row;
    ((at = at * kDims + static_cast<int64_t>(indices)), ...);
    return data_[at];
  }

 private:
  T* data_;
  int64_t rows_;
};

// One leaf of a Schema: its key (text as in key.h), element type, and the sizes
// behind the batch shape.
// Thread-safety: immutable.
template <FixedString kText, typename T, int64_t... kDims>
struct Field {
  static_assert(((kDims >= 0) && ...), "sizes must be >= 0");
  static_assert(sizeof...(kDims) <= Shape::kMaxRank, "too many dimensions");

  static constexpr auto kKey = kText;
  using Element = T;
  using View = FieldView<T, kDims...>;
  static constexpr DType kDType = DTypeOf<T>;

  static Shape TrailingShape() { return {kDims...}; }
};

namespace schema_internal {

// The words of the compile error about a wrong key. Not defined anywhere.
template <char... kLetters>
struct key;
template <typename... Keys>
struct keys_are;
template <typename Key, typename Keys>
struct no_such_key_in;

template <FixedString kText, typename Indices>
struct SpelledOut;
template <FixedString kText, size_t... kIndices>
struct SpelledOut<kText, std::index_sequence<kIndices...>> {
  using Type = key<kText.text[kIndices]...>;
};
template <FixedString kText>
using KeyOf =
    typename SpelledOut<kText,
                        std::make_index_sequence<kText.view().size()>>::Type;

template <int kIndex, typename... Types>
using At = std::tuple_element_t<kIndex, std::tuple<Types...>>;

template <size_t kSize>
constexpr int Find(std::string_view wanted,
                   const std::array<std::string_view, kSize>& keys) {
  for (size_t i = 0; i < kSize; ++i) {
    if (keys[i] == wanted) return static_cast<int>(i);
  }
  return -1;
}

// The rules of CheckKey.
constexpr bool IsWellFormed(std::string_view key) {
  bool component_is_empty = true;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '/') {
      if (component_is_empty) return false;
      component_is_empty = true;
      continue;
    }
    component_is_empty = false;
    if (key[i] != '\\') continue;
    ++i;
    if (i == key.size() || (key[i] != '/' && key[i] != '\\')) return false;
  }
  return !component_is_empty;
}

template <size_t kSize>
constexpr bool AreWellFormed(const std::array<std::string_view, kSize>& keys) {
  for (const std::string_view key : keys) {
    if (!IsWellFormed(key)) return false;
  }
  return true;
}

template <size_t kSize>
constexpr bool AreDistinct(const std::array<std::string_view, kSize>& keys) {
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j < kSize; ++j) {
      if (i == j || !keys[j].starts_with(keys[i])) continue;
      const std::string_view rest = keys[j].substr(keys[i].size());
      if (rest.empty() || rest[0] == '/') return false;
    }
  }
  return true;
}

}  // namespace schema_internal
}  // namespace rill

#endif  // RILL_SPECS_FIELD_H_
