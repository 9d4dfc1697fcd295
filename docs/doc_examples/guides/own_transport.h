// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_TRANSPORT_H_
#define RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_TRANSPORT_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/transport.h"

// The transport that docs/extending.md shows.
std::shared_ptr<rill::Transport> MakeNamed(
    std::shared_ptr<rill::Transport> inner,
    std::map<std::string, std::string> names);

#endif  // RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_TRANSPORT_H_
