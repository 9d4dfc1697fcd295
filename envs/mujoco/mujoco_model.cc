// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/mujoco_model.h"

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mujoco/mujoco.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/envs/mujoco/mujoco_call.h"

namespace rill {
namespace {

// The name of the text in MuJoCo's file system of memory.
constexpr char kTextName[] = "model.xml";

// `files` may be null: xml_file is then a path. `what` begins the error.
absl::StatusOr<MujocoModel> Compile(absl::string_view what,
                                    const char* xml_file, const mjVFS* files) {
  mjModel* model = nullptr;
  char error[1024] = "";
  RILL_RETURN_IF_ERROR(envs_internal::CallMujoco(
      [&] { model = mj_loadXML(xml_file, files, error, sizeof(error)); }));
  if (model == nullptr) {
    return InvalidArgument(
        what, " does not load: ", absl::StripAsciiWhitespace(error));
  }
  return MujocoModel(model, [](mjModel* dead) { mj_deleteModel(dead); });
}

}  // namespace

absl::StatusOr<MujocoModel> LoadMujocoModel(const std::string& xml_file) {
  if (!PathExists(xml_file)) {
    return NotFound("LoadMujocoModel: there is no file \"", xml_file, "\"");
  }
  return Compile(absl::StrCat("LoadMujocoModel: \"", xml_file, "\""),
                 xml_file.c_str(), /*files=*/nullptr);
}

absl::StatusOr<MujocoModel> ParseMujocoModel(absl::string_view xml) {
  mjVFS files;
  mj_defaultVFS(&files);
  const std::unique_ptr<mjVFS, void (*)(mjVFS*)> owner(&files, &mj_deleteVFS);
  if (mj_addBufferVFS(&files, kTextName, xml.data(),
                      static_cast<int>(xml.size())) != 0) {
    return InvalidArgument("ParseMujocoModel: the text is empty");
  }
  return Compile("ParseMujocoModel: the text", kTextName, &files);
}

}  // namespace rill
