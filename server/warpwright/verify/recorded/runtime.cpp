// What a host loop asks of the CUDA runtime, written down and not done: no GPU and no driver is needed.
//
// A library that was linked without a CUDA runtime takes these functions for it. A launch is a line of text: the stream,
// the kernel, the grid, the block, the bytes of shared memory, and each argument's bytes. What is captured becomes such
// lines when its graph is launched. `fail` makes the nth call of one function fail, as a real one may.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
using Launches = std::vector<std::string>;
struct Stream {
  bool capturing = false;
  Launches launches;
};

std::map<const void *, std::string> kernels;
std::map<std::string, std::vector<size_t>> parameters;
std::vector<Configuration> pushed;
std::map<cudaStream_t, Stream> streams;
std::map<const void *, Launches> graphs, executables;
std::map<std::string, int> calls;
std::string record, failing;
int failing_call = 0;
std::string otherwise;
int graph_launches = 0;
size_t next_handle = 0x5000;
cudaError_t last = cudaSuccess;

void *handle() { return reinterpret_cast<void *>(next_handle += 0x10); }

cudaError_t answered(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

// Whether a function is asked for what it is not modelled with; a GPU may do that, so that nothing is proved then.
bool is_other(bool asked, const char *function) {
  if (asked) otherwise = function;
  return asked;
}

bool fails(const char *function) { return ++calls[function] == failing_call && failing == function; }

std::string name_of(cudaStream_t stream) {
  char text[32];
  snprintf(text, sizeof text, "%zx ", reinterpret_cast<size_t>(stream));
  return text;
}

cudaError_t launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
  const std::string &name = kernels[function];
  auto known = parameters.find(name);
  char shape[160];
  snprintf(shape, sizeof shape, " %u,%u,%u %u,%u,%u %zu", grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
  std::string line = (known != parameters.end() ? "" : "?") + name + shape;
  for (size_t i = 0; known != parameters.end() && i < known->second.size(); ++i) {
    line += ' ';
    for (size_t b = 0; b < known->second[i]; ++b) {
      snprintf(shape, sizeof shape, "%02x", static_cast<unsigned char *>(arguments[i])[b]);
      line += shape;
    }
  }
  auto own = streams.find(stream);
  if (own != streams.end() && own->second.capturing)
    own->second.launches.push_back(line);
  else
    record += name_of(stream) + line + '\n';
  return cudaSuccess;
}

}  // namespace

extern "C" {

// Of this library itself.
void *warpwright_open(const char *path) { return dlopen(path, RTLD_LAZY | RTLD_LOCAL); }
const char *warpwright_error() { return dlerror(); }
void *warpwright_function(void *library, const char *name) { return dlsym(library, name); }
void warpwright_kernel(const char *name, const size_t *sizes, size_t count) {
  parameters[name].assign(sizes, sizes + count);
}
void warpwright_reset(const char *function, int call) {
  record.clear(), calls.clear(), streams.clear(), graphs.clear(), executables.clear(), pushed.clear();
  otherwise.clear(), graph_launches = 0;
  failing = function, failing_call = call, last = cudaSuccess, next_handle = 0x5000;
}
const char *warpwright_record() { return record.c_str(); }
int warpwright_left() { return static_cast<int>(streams.size() + graphs.size() + executables.size()); }
int warpwright_last() { return last; }
const char *warpwright_otherwise() { return otherwise.c_str(); }
int warpwright_graph_launches() { return graph_launches; }

// What nvcc writes into a library.
void **__cudaRegisterFatBinary(void *) { return reinterpret_cast<void **>(&record); }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 1; }
void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *,
                            int *) {
  kernels[host] = name;
}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  pushed.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (pushed.empty()) return cudaErrorInvalidConfiguration;
  *grid = pushed.back().grid, *block = pushed.back().block, *shared = pushed.back().shared;
  *static_cast<cudaStream_t *>(stream) = pushed.back().stream;
  pushed.pop_back();
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream) {
  return launch(reinterpret_cast<const void *>(kernel), grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
  return launch(function, grid, block, arguments, shared, stream);
}

// What a loop and its graph call.
cudaError_t cudaGetLastError() {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last; }
const char *cudaGetErrorString(cudaError_t) { return "an error that was made for a test"; }
const char *cudaGetErrorName(cudaError_t) { return "cudaErrorUnknown"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  bool other = is_other(flags != cudaStreamNonBlocking, "cudaStreamCreateWithFlags");
  if (fails("cudaStreamCreateWithFlags") || other) return answered(cudaErrorInvalidValue);
  *stream = static_cast<cudaStream_t>(handle());
  streams[*stream] = Stream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return answered(streams.erase(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  auto own = streams.find(stream);
  bool foreign = own == streams.end() && failing.empty();  // a stream of the caller's, not one that could not be made
  bool other = is_other(mode != cudaStreamCaptureModeThreadLocal || foreign, "cudaStreamBeginCapture");
  bool fits = !other && own != streams.end() && !own->second.capturing;
  if (fails("cudaStreamBeginCapture") || !fits) return answered(cudaErrorStreamCaptureUnsupported);
  own->second = {true, {}};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  auto own = streams.find(stream);
  if (own == streams.end() || !own->second.capturing) return answered(cudaErrorIllegalState);
  own->second.capturing = false;
  *graph = nullptr;
  if (fails("cudaStreamEndCapture")) return answered(cudaErrorStreamCaptureInvalidated);
  *graph = static_cast<cudaGraph_t>(handle());
  graphs[*graph] = own->second.launches;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
  auto own = graphs.find(graph);
  bool fits = own != graphs.end() && !is_other(flags != 0, "cudaGraphInstantiate");
  if (fails("cudaGraphInstantiate") || !fits) return answered(cudaErrorInvalidValue);
  *executable = static_cast<cudaGraphExec_t>(handle());
  executables[*executable] = own->second;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  auto own = executables.find(executable);
  auto to = streams.find(stream);
  bool fits = own != executables.end() && (to == streams.end() || !to->second.capturing);
  if (fails("cudaGraphLaunch") || !fits) return answered(cudaErrorInvalidValue);
  ++graph_launches;
  for (const std::string &line : own->second) record += name_of(stream) + line + '\n';
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return answered(executables.erase(executable) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answered(graphs.erase(graph) ? cudaSuccess : cudaErrorInvalidValue);
}
}
