// SPDX-License-Identifier: Apache-2.0
// A stand-in for the CUDA driver, libcuda.so.1, that knows no device. It
// records that it was loaded and each call, one name a line, in the file that
// the environment variable RILL_CUDA_RECORD names. See cuda_record.h.
//
// RILL_CUDA_DRIVER_VERSION ("12080") makes it an older driver.
//
// It exports the ways into the driver: what libcudart asks for by dlsym, and
// cuGetProcAddress, through which it gets the rest. A function that is not here
// is recorded by the name that was asked for.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#define RILL_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
constexpr int kNotFound = 500;  // CUDA_ERROR_NOT_FOUND

// One write with O_APPEND, so that lines of several processes stay whole.
void Record(const char* name) {
  const char* const path = std::getenv("RILL_CUDA_RECORD");
  if (path == nullptr) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  char line[256];
  const size_t length = strnlen(name, sizeof(line) - 1);
  std::memcpy(line, name, length);
  line[length] = '\n';
  if (write(fd, line, length + 1) < 0) std::abort();
  close(fd);
}

__attribute__((constructor)) void RecordLoad() { Record("(loaded)"); }

int Find(const char* symbol, void** function) {
  Dl_info self;
  *function = nullptr;
  if (dladdr(reinterpret_cast<void*>(&RecordLoad), &self) != 0) {
    void* const library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) {
      *function = dlsym(library, symbol);
      dlclose(library);
    }
  }
  return *function == nullptr ? kNotFound : kSuccess;
}

}  // namespace

RILL_EXPORT int cuDriverGetVersion(int* version) {
  Record("cuDriverGetVersion");
  const char* const other = std::getenv("RILL_CUDA_DRIVER_VERSION");
  *version = other == nullptr ? 13000 : std::atoi(other);
  return kSuccess;
}

RILL_EXPORT int cuGetProcAddress(const char* symbol, void** function,
                                 int /*version*/, uint64_t /*flags*/) {
  Record("cuGetProcAddress");
  Record(symbol);
  return Find(symbol, function);
}

RILL_EXPORT int cuGetProcAddress_v2(const char* symbol, void** function,
                                    int version, uint64_t flags, int* result) {
  const int status = cuGetProcAddress(symbol, function, version, flags);
  // CU_GET_PROC_ADDRESS_SUCCESS or _SYMBOL_NOT_FOUND.
  if (result != nullptr) *result = status == kSuccess ? 0 : 1;
  return status;
}

RILL_EXPORT int cuGetErrorString(int /*error*/, const char** text) {
  Record("cuGetErrorString");
  *text = "no CUDA-capable device is detected (recording stand-in)";
  return kSuccess;
}

RILL_EXPORT int cuGetErrorName(int /*error*/, const char** text) {
  Record("cuGetErrorName");
  *text = "CUDA_ERROR_NO_DEVICE";
  return kSuccess;
}

RILL_EXPORT int cuInit(unsigned int /*flags*/) {
  Record("cuInit");
  return kNoDevice;
}

RILL_EXPORT int cuDeviceGetCount(int* count) {
  Record("cuDeviceGetCount");
  *count = 0;
  return kNoDevice;
}

// The rest says that there is no device, whatever the arguments.
#define RILL_NO_DEVICE(name) \
  RILL_EXPORT int name() {   \
    Record(#name);           \
    return kNoDevice;        \
  }

RILL_NO_DEVICE(cuDeviceGet)
RILL_NO_DEVICE(cuDeviceGetName)
RILL_NO_DEVICE(cuDeviceGetAttribute)
RILL_NO_DEVICE(cuDeviceGetUuid)
RILL_NO_DEVICE(cuDeviceTotalMem_v2)
RILL_NO_DEVICE(cuDevicePrimaryCtxRetain)
RILL_NO_DEVICE(cuDevicePrimaryCtxRelease_v2)
RILL_NO_DEVICE(cuDevicePrimaryCtxGetState)
RILL_NO_DEVICE(cuCtxCreate_v2)
RILL_NO_DEVICE(cuCtxDestroy_v2)
RILL_NO_DEVICE(cuCtxGetCurrent)
RILL_NO_DEVICE(cuCtxSetCurrent)
RILL_NO_DEVICE(cuCtxGetDevice)
RILL_NO_DEVICE(cuCtxSynchronize)
RILL_NO_DEVICE(cuGetExportTable)
RILL_NO_DEVICE(cuModuleLoadData)
RILL_NO_DEVICE(cuModuleGetFunction)
RILL_NO_DEVICE(cuLibraryLoadData)
RILL_NO_DEVICE(cuLaunchKernel)
RILL_NO_DEVICE(cuMemAlloc_v2)
RILL_NO_DEVICE(cuMemFree_v2)
RILL_NO_DEVICE(cuMemAllocHost_v2)
RILL_NO_DEVICE(cuMemHostAlloc)
RILL_NO_DEVICE(cuMemHostRegister_v2)
RILL_NO_DEVICE(cuMemFreeHost)
RILL_NO_DEVICE(cuMemGetInfo_v2)
RILL_NO_DEVICE(cuMemcpy)
RILL_NO_DEVICE(cuMemcpyAsync)
RILL_NO_DEVICE(cuMemsetD8Async)
RILL_NO_DEVICE(cuPointerGetAttribute)
RILL_NO_DEVICE(cuStreamCreate)
RILL_NO_DEVICE(cuStreamDestroy_v2)
RILL_NO_DEVICE(cuStreamSynchronize)
RILL_NO_DEVICE(cuStreamWaitEvent)
RILL_NO_DEVICE(cuEventCreate)
RILL_NO_DEVICE(cuEventDestroy_v2)
RILL_NO_DEVICE(cuEventRecord)
RILL_NO_DEVICE(cuEventQuery)
RILL_NO_DEVICE(cuEventSynchronize)
