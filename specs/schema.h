// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_SCHEMA_H_
#define RILL_SPECS_SCHEMA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/specs/field.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The keys, dtypes and trailing shapes of a dictionary, known to the compiler.
// A key that is malformed, stands twice, or is a leaf and a dictionary at once
// does not compile. See Typed for use.
// Thread-safety: immutable.
template <typename... Fields>
class Schema {
 public:
  static constexpr int kNumFields = sizeof...(Fields);

  // The position of a key among the fields. Another key does not compile: the
  // error names it and the keys that there are, letter by letter, as
  // no_such_key_in<key<'x'>, keys_are<...>>.
  template <FixedString kKey>
  static consteval int IndexOf() {
    constexpr int kIndex = schema_internal::Find(kKey.view(), kKeys);
    if constexpr (kIndex < 0) {
      // Not defined: this line is the error.
      (void)sizeof(schema_internal::no_such_key_in<
                   schema_internal::KeyOf<kKey>,
                   schema_internal::keys_are<
                       schema_internal::KeyOf<Fields::kKey>...>>);
      return 0;
    } else {
      return kIndex;
    }
  }
  template <FixedString kKey>
  using FieldOf = schema_internal::At<IndexOf<kKey>(), Fields...>;

  // The run-time form, without domains. Lives for ever.
  static const TensorDictSpec& Spec() {
    static const TensorDictSpec* const spec = [] {
      auto* made = new TensorDictSpec;
      // The keys have been checked below: no Set fails.
      (made->Set(Fields::kKey.view(),
                 LeafSpec::Unbounded(DTypeOf<typename Fields::Element>,
                                     Fields::TrailingShape()))
           .IgnoreError(),
       ...);
      return made;
    }();
    return *spec;
  }

 private:
  static constexpr std::array<std::string_view, kNumFields> kKeys = {
      Fields::kKey.view()...};
  static_assert(schema_internal::AreWellFormed(kKeys),
                "a key of the schema is malformed (see tensordict/key.h)");
  static_assert(schema_internal::AreDistinct(kKeys),
                "a key of the schema stands twice, or is a leaf and a "
                "dictionary at once");
};

// A dictionary that has been checked against a Schema: from then on access to a
// leaf is one load, and what it gives knows its type and trailing shape.
//
// Thread-safety: thread-compatible; the bytes are the users' to synchronise.
// Cost: Bind and Create O(fields); Get is free of look-ups and branches.
//
// Example (SchemaTest.Example runs it):
//   using Step = Schema<Field<"observation", float, 4>,
//                       Field<"action", int64_t>,
//                       Field<"next/reward", float, 1>>;
//   RILL_ASSIGN_OR_RETURN(auto steps, Typed<Step>::Create({32}));
//   steps.Get<"observation">()[7][2] = 1.5f;
//   steps.Get<"action">()[7] = 1;
//   RILL_RETURN_IF_ERROR(rollout.Update(steps.dict()));
template <typename S>
class Typed {
 public:
  // Checks once. INVALID_ARGUMENT names missing keys or both sides of the first
  // leaf that differs; FAILED_PRECONDITION if one is not contiguous or not in
  // host memory. Other keys may be there.
  static absl::StatusOr<Typed> Bind(TensorDict dict) {
    RILL_RETURN_IF_ERROR(S::Spec().CheckValues("Typed::Bind", dict,
                                               /*allow_extra=*/true));
    for (const TensorDictSpec::Leaf& leaf : S::Spec().leaves()) {
      const Tensor& tensor = *dict.Find(leaf.key);
      if (!tensor.is_host() || !tensor.is_contiguous()) {
        return FailedPrecondition(
            "Typed::Bind: \"", leaf.key, "\" is ",
            tensor.is_host() ? "not contiguous" : "not in host memory",
            ", want contiguous host memory; use Clone or To first");
      }
    }
    return Typed(std::move(dict));
  }

  // Uninitialised rows. All leaves lie in one allocation, each at a multiple of
  // 64 bytes. Errors as TensorDictSpec::Empty.
  static absl::StatusOr<Typed> Create(const Shape& batch_shape) {
    RILL_ASSIGN_OR_RETURN(TensorDict dict, S::Spec().Empty(batch_shape, {}));
    return Typed(std::move(dict));
  }

  const Shape& batch_shape() const { return dict_.batch_shape(); }
  // Product of the batch shape.
  int64_t num_rows() const { return num_rows_; }
  // Shares the bytes. Its structure cannot be changed here; take a copy.
  const TensorDict& dict() const { return dict_; }

  // All rows of a leaf, valid as long as the bytes: that is, while this, its
  // dict() or a copy of them lives.
  template <FixedString kKey>
  auto Get() const {
    using Found = typename S::template FieldOf<kKey>;
    return typename Found::View(reinterpret_cast<typename Found::Element*>(
                                    data_[S::template IndexOf<kKey>()]),
                                num_rows_);
  }

 private:
  // For a dictionary that fits.
  explicit Typed(TensorDict dict)
      : num_rows_(dict.batch_shape().num_elements()), dict_(std::move(dict)) {
    int i = 0;
    for (const TensorDictSpec::Leaf& leaf : S::Spec().leaves()) {
      data_[i++] = dict_.Find(leaf.key)->raw_data();
    }
  }

  std::array<std::byte*, S::kNumFields> data_ = {};
  int64_t num_rows_ = 0;
  TensorDict dict_;
};

}  // namespace rill

#endif  // RILL_SPECS_SCHEMA_H_
