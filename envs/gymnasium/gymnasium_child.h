// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_GYMNASIUM_GYMNASIUM_CHILD_H_
#define RILL_ENVS_GYMNASIUM_GYMNASIUM_CHILD_H_

namespace rill::gymnasium_internal {

// The text of gymnasium_child.py.
extern const char kGymnasiumChild[];

}  // namespace rill::gymnasium_internal

#endif  // RILL_ENVS_GYMNASIUM_GYMNASIUM_CHILD_H_
