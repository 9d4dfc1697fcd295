// SPDX-License-Identifier: Apache-2.0
// Uses of a struct's schema, one for each macro;
// struct_schema_compile_fails_test compiles them one at a time and knows which
// of them must not compile.
#include <array>
#include <cstdint>
#include <vector>

#include "rill/specs/struct_schema.h"

namespace rill {

struct Step {
  std::array<float, 4> observation;
  int64_t action;
  float reward;
  const int64_t id = 0;
  long double wide;
  float Sum() const { return reward; }
};
struct Other {
  float reward;
};
// Not to be used by value: each case instantiates it.
template <typename... Members>
using Of = StructSchema<Step, Members...>;
using StepSchema = Of<Member<"observation", &Step::observation>,
                      Member<"action", &Step::action>,
                      Member<"next/reward", &Step::reward, 1>>;

template <typename S>
void Make() {
  Typed<S>::Create({1}).IgnoreError();
}

void Use(const Typed<StepSchema>& batch, const std::vector<Step>& steps) {
#if defined(RIGHT)
  Make<StepSchema>();
  ToBatch<StepSchema>(steps).IgnoreError();
  SetRow(batch, 0, GetRow(batch, 1));
  batch.Get<"observation">()(0, 3) = 1;
#elif defined(NO_DTYPE)
  Make<Of<Member<"wide", &Step::wide>>>();
#elif defined(KEY_TWICE)
  Make<Of<Member<"a", &Step::action>, Member<"a", &Step::reward>>>();
#elif defined(LEAF_AND_DICTIONARY)
  Make<Of<Member<"a", &Step::action>, Member<"a/b", &Step::reward>>>();
#elif defined(MEMBER_OF_ANOTHER_STRUCT)
  Make<Of<Member<"reward", &Other::reward>>>();
#elif defined(OTHER_NUMBER_OF_ELEMENTS)
  Make<Of<Member<"observation", &Step::observation, 2, 3>>>();
#elif defined(MEMBER_FUNCTION)
  Make<Of<Member<"sum", &Step::Sum>>>();
#elif defined(CONST_MEMBER)
  Make<Of<Member<"id", &Step::id>>>();
#elif defined(ROWS_OF_ANOTHER_STRUCT)
  SetRow(batch, 0, Other{});
#elif defined(BATCH_OF_ANOTHER_STRUCT)
  ToBatch<StepSchema>(std::vector<Other>(3)).IgnoreError();
#elif defined(SCHEMA_WITHOUT_STRUCT)
  using Plain = Schema<Field<"a", float>>;
  ToBatch<Plain>(steps).IgnoreError();
#elif defined(WRONG_KEY)
  batch.Get<"reward">();
#endif
}

}  // namespace rill
