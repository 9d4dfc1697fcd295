// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_STRUCT_MEMBER_H_
#define RILL_SPECS_STRUCT_MEMBER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "rill/specs/field.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace struct_internal {

template <int64_t... kDims>
using Sizes = std::integer_sequence<int64_t, kDims...>;

template <int64_t kFirst, typename Rest>
struct Prepended;
template <int64_t kFirst, int64_t... kDims>
struct Prepended<kFirst, Sizes<kDims...>> {
  using Type = Sizes<kFirst, kDims...>;
};

// The elements of a value, and its sizes: arrays may nest.
template <typename T>
struct ValueTraits {
  using Element = T;
  using Dims = Sizes<>;
};
template <typename T, size_t kSize>
struct ValueTraits<std::array<T, kSize>> {
  using Element = typename ValueTraits<T>::Element;
  using Dims = typename Prepended<static_cast<int64_t>(kSize),
                                  typename ValueTraits<T>::Dims>::Type;
};
template <typename T, size_t kSize>
struct ValueTraits<T[kSize]> : ValueTraits<std::array<T, kSize>> {};

template <typename Dims>
inline constexpr int64_t kProduct = 0;
template <int64_t... kDims>
inline constexpr int64_t kProduct<Sizes<kDims...>> = (int64_t{1} * ... * kDims);

template <typename T>
concept HasDType = requires {
  DTypeTraits<T>::kDType;
};

template <typename Pointer>
struct PointerTraits {
  static_assert(!std::is_same_v<Pointer, Pointer>,
                "a Member wants a pointer to a data member: &Step::reward");
};
template <typename S, typename T>
struct PointerTraits<T S::*> {
  static_assert(!std::is_function_v<T>,
                "a Member wants a pointer to a data member, not a function");
  static_assert(!std::is_const_v<T>,
                "the member is const: it is not read back");
  using Struct = S;
  using Value = T;
};

template <FixedString kText, typename Element, typename Dims>
struct FieldFor;
template <FixedString kText, typename Element, int64_t... kDims>
struct FieldFor<kText, Element, Sizes<kDims...>> {
  using Type = Field<kText, Element, kDims...>;
};

}  // namespace struct_internal

// Which member of a struct is which field of a schema: a key (text as in key.h)
// and a pointer to the member. The element type and the trailing shape come
// from the member's type. Numbers, bool, Float16, BFloat16 and std::complex are
// scalars; std::array<T, N> and T[N] add a size of N in front of T's. If there
// are kDims, they replace that shape by another of as many elements: 1 makes a
// scalar a field of shape [1].
// Thread-safety: immutable.
template <FixedString kText, auto kPointer, int64_t... kDims>
struct Member {
 private:
  using Pointer =
      struct_internal::PointerTraits<std::remove_const_t<decltype(kPointer)>>;
  using Traits = struct_internal::ValueTraits<typename Pointer::Value>;
  using Dims = std::conditional_t<sizeof...(kDims) == 0, typename Traits::Dims,
                                  struct_internal::Sizes<kDims...>>;

 public:
  using Struct = typename Pointer::Struct;
  using Value = typename Pointer::Value;
  using Element = typename Traits::Element;
  // Elements of a row.
  static constexpr int64_t kNumElements =
      struct_internal::kProduct<typename Traits::Dims>;

  static_assert(struct_internal::HasDType<Element>,
                "the member's type has no dtype (see tensors/dtype.h)");
  static_assert(struct_internal::kProduct<Dims> == kNumElements,
                "the sizes given do not have as many elements as the member");
  static_assert(kNumElements == 0 ||
                    sizeof(Value) == kNumElements * sizeof(Element),
                "the member's elements do not lie without gaps");

  using AsField =
      typename struct_internal::FieldFor<kText, Element, Dims>::Type;

  // Between the member and its row of a leaf.
  static void Store(const Struct& from, Element* row) {
    if constexpr (kNumElements > 0) {
      std::memcpy(static_cast<void*>(row), &(from.*kPointer), sizeof(Value));
    }
  }
  static void Load(const Element* row, Struct* to) {
    if constexpr (kNumElements > 0) {
      if constexpr (std::is_same_v<Element, bool>) {
        // Bytes from files may be neither 0 nor 1.
        const auto* bytes = reinterpret_cast<const std::byte*>(row);
        auto* elements = reinterpret_cast<bool*>(&(to->*kPointer));
        for (int64_t i = 0; i < kNumElements; ++i) {
          elements[i] = bytes[i] != std::byte{0};
        }
      } else {
        std::memcpy(static_cast<void*>(&(to->*kPointer)), row, sizeof(Value));
      }
    }
  }
};

}  // namespace rill

#endif  // RILL_SPECS_STRUCT_MEMBER_H_
