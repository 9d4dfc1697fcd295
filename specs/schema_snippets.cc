// SPDX-License-Identifier: Apache-2.0
// Uses of a schema, one for each macro; schema_compile_fails_test compiles them
// one at a time and knows which of them must not compile.
#include <cstdint>

#include "rill/specs/schema.h"

namespace rill {

using Step = Schema<Field<"observation", float, 4>, Field<"action", int64_t>,
                    Field<"next/reward", float, 1>>;

void Use(const Typed<Step>& steps) {
#if defined(RIGHT)
  steps.Get<"observation">()[0][3] = 1;
  steps.Get<"next/reward">()(0, 0) = 1;
  steps.Get<"action">()[0] = 1;
#elif defined(WRONG_KEY)
  steps.Get<"nope">();
#elif defined(WRONG_KEY_OF_SPEC)
  static_assert(Step::IndexOf<"next/done">() == 0);
#elif defined(WRONG_TYPE)
  float& element = steps.Get<"action">()[0];
  element = 1;
#elif defined(TOO_MANY_INDICES)
  steps.Get<"observation">()(0, 1, 2) = 1;
#elif defined(KEY_TWICE)
  using Twice = Schema<Field<"a", float>, Field<"a", float>>;
  Typed<Twice>::Create({1}).IgnoreError();
#elif defined(LEAF_AND_DICTIONARY)
  using Both = Schema<Field<"next", float>, Field<"next/reward", float>>;
  Typed<Both>::Create({1}).IgnoreError();
#elif defined(MALFORMED_KEY)
  using Malformed = Schema<Field<"a//b", float>>;
  Typed<Malformed>::Create({1}).IgnoreError();
#elif defined(UNKNOWN_ELEMENT_TYPE)
  using Unknown = Schema<Field<"a", long double>>;
  Typed<Unknown>::Create({1}).IgnoreError();
#elif defined(NEGATIVE_SIZE)
  using Negative = Schema<Field<"a", float, -1>>;
  Typed<Negative>::Create({1}).IgnoreError();
#endif
}

}  // namespace rill
