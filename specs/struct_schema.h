// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_STRUCT_SCHEMA_H_
#define RILL_SPECS_STRUCT_SCHEMA_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/specs/schema.h"
#include "rill/specs/spec.h"
#include "rill/specs/struct_member.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// A Schema whose fields are members of a struct, so that rows of a batch and
// values of the struct turn into each other. Members that are not named are
// left out, and value-initialised on the way back. A member of another struct,
// of a type without a dtype, or a key that stands twice does not compile.
// Bools are read as 0 and 1, whatever the bytes are.
//
// Thread-safety: immutable; the functions below as Typed.
// Cost: a copy of the members' bytes, with sizes the compiler knows.
//
// Example (StructSchemaTest.Example runs it):
//   struct Step {
//     std::array<float, 4> observation;
//     int64_t action;
//     float reward;
//   };
//   using StepSchema =
//       StructSchema<Step, Member<"observation", &Step::observation>,
//                    Member<"action", &Step::action>,
//                    Member<"next/reward", &Step::reward, 1>>;  // [1]
//   const std::vector<Step> steps(32);
//   RILL_ASSIGN_OR_RETURN(auto batch, ToBatch<StepSchema>(steps));
//   batch.Get<"next/reward">()[7][0] *= 2;
//   std::vector<Step> back = ToStructs(batch);
template <typename S, typename... Members>
class StructSchema : public Schema<typename Members::AsField...> {
 public:
  using Struct = S;
  static_assert((std::is_base_of_v<typename Members::Struct, S> && ...),
                "a member is of another struct than the schema");
  static_assert(std::is_default_constructible_v<S>,
                "the struct has no default constructor");

  // Between structs and as many rows of a batch, from row `begin` on.
  static void Store(std::span<const S> from, const Typed<StructSchema>& batch,
                    int64_t begin) {
    StoreColumns(from, batch.template Get<Members::AsField::kKey>().data() +
                           begin * Members::kNumElements...);
  }
  static void Load(const Typed<StructSchema>& batch, int64_t begin,
                   std::span<S> to) {
    LoadColumns(to, batch.template Get<Members::AsField::kKey>().data() +
                        begin * Members::kNumElements...);
  }

 private:
  // The columns as arguments: no store can change where they are.
  static void StoreColumns(std::span<const S> from,
                           typename Members::Element*... columns) {
    const auto rows = static_cast<int64_t>(from.size());
    for (int64_t i = 0; i < rows; ++i) {
      (Members::Store(from[i], columns + i * Members::kNumElements), ...);
    }
  }
  static void LoadColumns(std::span<S> to,
                          const typename Members::Element*... columns) {
    const auto rows = static_cast<int64_t>(to.size());
    for (int64_t i = 0; i < rows; ++i) {
      (Members::Load(columns + i * Members::kNumElements, &to[i]), ...);
    }
  }
};

namespace struct_internal {

template <typename T>
inline constexpr bool kIsStructSchema = false;
template <typename S, typename... Members>
inline constexpr bool kIsStructSchema<StructSchema<S, Members...>> = true;
template <typename T>
concept AnyStructSchema = kIsStructSchema<T>;

template <typename Schema>
bool IsWritable(const Typed<Schema>& batch) {
  bool is_writable = true;
  for (const TensorDictSpec::Leaf& leaf : Schema::Spec().leaves()) {
    is_writable &= batch.dict().Find(leaf.key)->is_writable();
  }
  return is_writable;
}

}  // namespace struct_internal

// A batch of shape [structs.size()] in one allocation. Errors as
// Typed::Create. The Into form reuses `out`, without allocation, where it has
// that batch shape and may be written to, else makes it anew.
template <struct_internal::AnyStructSchema Schema>
absl::StatusOr<Typed<Schema>> ToBatch(
    std::span<const typename Schema::Struct> structs) {
  RILL_ASSIGN_OR_RETURN(
      Typed<Schema> batch,
      Typed<Schema>::Create({static_cast<int64_t>(structs.size())}));
  Schema::Store(structs, batch, 0);
  return batch;
}
template <struct_internal::AnyStructSchema Schema>
absl::Status ToBatchInto(
    std::span<const std::type_identity_t<typename Schema::Struct>> structs,
    Typed<Schema>* out) {
  if (out->batch_shape() != Shape({static_cast<int64_t>(structs.size())}) ||
      !struct_internal::IsWritable(*out)) {
    RILL_ASSIGN_OR_RETURN(*out, ToBatch<Schema>(structs));
    return absl::OkStatus();
  }
  Schema::Store(structs, *out, 0);
  return absl::OkStatus();
}

// All rows of a batch, row-major where it has more batch dimensions than one.
// The Into form: INVALID_ARGUMENT, nothing written, unless `out` has num_rows()
// structs; members that the schema does not name are kept.
template <struct_internal::AnyStructSchema Schema>
std::vector<typename Schema::Struct> ToStructs(const Typed<Schema>& batch) {
  std::vector<typename Schema::Struct> structs(
      static_cast<size_t>(batch.num_rows()));
  Schema::Load(batch, 0, structs);
  return structs;
}
template <struct_internal::AnyStructSchema Schema>
absl::Status StructsInto(
    const Typed<Schema>& batch,
    std::span<std::type_identity_t<typename Schema::Struct>> out) {
  if (static_cast<int64_t>(out.size()) != batch.num_rows()) {
    return InvalidArgument("StructsInto: number of structs: got ", out.size(),
                           ", want ", batch.num_rows());
  }
  Schema::Load(batch, 0, out);
  return absl::OkStatus();
}

// One row. The index is not checked.
template <struct_internal::AnyStructSchema Schema>
typename Schema::Struct GetRow(const Typed<Schema>& batch, int64_t row) {
  typename Schema::Struct value = {};
  Schema::Load(batch, row, {&value, 1});
  return value;
}
template <struct_internal::AnyStructSchema Schema>
void SetRow(const Typed<Schema>& batch, int64_t row,
            const std::type_identity_t<typename Schema::Struct>& value) {
  Schema::Store({&value, 1}, batch, row);
}

// A batch that grows row by row, as a vector does.
// Thread-safety: thread-compatible.
// Cost: Append amortised O(bytes of a row), without allocation while it fits.
//
// Example (StructAppenderTest.Example runs it):
//   StructAppender<StepSchema> steps;
//   RILL_RETURN_IF_ERROR(steps.Append(step));
//   RILL_ASSIGN_OR_RETURN(Typed<StepSchema> batch, steps.Take());
template <struct_internal::AnyStructSchema Schema>
class StructAppender {
 public:
  int64_t size() const { return size_; }
  int64_t capacity() const { return batch_.empty() ? 0 : batch_[0].num_rows(); }

  // Room for `rows` in all. Errors as Typed::Create; what is there stays.
  absl::Status Reserve(int64_t rows) {
    if (rows <= capacity()) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(Typed<Schema> wider, Typed<Schema>::Create({rows}));
    for (const TensorDictSpec::Leaf& leaf : Schema::Spec().leaves()) {
      if (size_ == 0) break;
      RILL_ASSIGN_OR_RETURN(const Tensor there,
                            wider.dict().Find(leaf.key)->Slice(0, 0, size_));
      RILL_ASSIGN_OR_RETURN(
          const Tensor here,
          batch_[0].dict().Find(leaf.key)->Slice(0, 0, size_));
      RILL_RETURN_IF_ERROR(there.CopyFrom(here));
    }
    batch_.clear();
    batch_.push_back(std::move(wider));
    return absl::OkStatus();
  }

  absl::Status Append(const typename Schema::Struct& value) {
    if (size_ == capacity()) {
      constexpr int64_t kFirst = 16;
      RILL_RETURN_IF_ERROR(Reserve(std::max(kFirst, 2 * size_)));
    }
    SetRow(batch_[0], size_++, value);
    return absl::OkStatus();
  }

  // The rows as a batch of shape [size()]; none are left here.
  absl::StatusOr<Typed<Schema>> Take() {
    RILL_RETURN_IF_ERROR(Reserve(1));
    RILL_ASSIGN_OR_RETURN(TensorDict rows, batch_[0].dict().Slice(0, 0, size_));
    batch_.clear();
    size_ = 0;
    return Typed<Schema>::Bind(std::move(rows));
  }

 private:
  std::vector<Typed<Schema>> batch_;  // At most one.
  int64_t size_ = 0;
};

}  // namespace rill

#endif  // RILL_SPECS_STRUCT_SCHEMA_H_
