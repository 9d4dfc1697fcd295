// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_WRITER_TRAITS_H_
#define RILL_REPLAY_WRITERS_WRITER_TRAITS_H_

#include <string>

#include "rill/base/option_values.h"

namespace rill {

// The facts about a writer, fixed when it is made. Other parts and
// checkpoints are compared with it.
//
// Thread-safety: a value.
struct WriterTraits {
  // "RoundRobinWriter": named in errors and in checkpoints.
  std::string name;
  // The options that it was made with, for checkpoints to compare.
  // One that does not say is taken to be as it was.
  OptionValues options = {};
  // Extend is just Storage::Extend of the whole batch.
  bool appends_all = false;
  // False: new rows may take the places of others, so that slots do not tell
  // which step came after which.
  bool keeps_order = true;
};

}  // namespace rill

#endif  // RILL_REPLAY_WRITERS_WRITER_TRAITS_H_
