// Loaded into a CUDA program by the driver (CUDA_INJECTION64_PATH): writes down by CUPTI what the program gave its GPUs
// and which calls gave it, into the file that WARPWRIGHT_CUPTI_TRACE names.
//
// Lines, whose fields are parted by tabs; times are nanoseconds of CUPTI's clock:
//   D name                                                      a GPU
//   R name start end thread correlation                         a call of the CUDA runtime
//   S correlation address address ...                           where it was called, the innermost frame first
//   K name start end device stream correlation gx gy gz bx by bz
//   C kind source destination bytes start end device stream correlation
//   F start end device stream correlation                       a memset
//   M start end offset path                                     a file's code in memory, as often as it is said
// The structs' names have a version, which changes with the header: KERNEL, MEMCPY, MEMSET and DEVICE are defined where
// this is compiled.
#include <cupti.h>
#include <cxxabi.h>
#include <execinfo.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <mutex>

namespace {

constexpr size_t kBufferBytes = 4u << 20;
constexpr int kFrames = 24;
constexpr uint32_t kFlushMilliseconds = 200;

std::FILE* sink = nullptr;
std::mutex writing;

// Calls that give a GPU nothing and wait for nothing are not worth a stack.
bool is_quick(const char* name) {
    for (const char* part : {"GetLastError", "PeekAtLastError", "CallConfiguration", "cudaGetDevice", "cudaSetDevice"}) {
        if (std::strstr(name, part)) return true;
    }
    return false;
}

void write_record(const CUpti_Activity* record) {
    switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const auto* it = reinterpret_cast<const KERNEL*>(record);
            char* readable = abi::__cxa_demangle(it->name, nullptr, nullptr, nullptr);
            std::fprintf(sink, "K\t%s\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t%u\t%d\t%d\t%d\t%d\t%d\t%d\n",
                         readable ? readable : it->name, it->start, it->end, it->deviceId, it->streamId,
                         it->correlationId, it->gridX, it->gridY, it->gridZ, it->blockX, it->blockY, it->blockZ);
            std::free(readable);
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            const auto* it = reinterpret_cast<const MEMCPY*>(record);
            std::fprintf(sink, "C\t%d\t%d\t%d\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t%u\n", it->copyKind,
                         it->srcKind, it->dstKind, it->bytes, it->start, it->end, it->deviceId, it->streamId,
                         it->correlationId);
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            const auto* it = reinterpret_cast<const MEMSET*>(record);
            std::fprintf(sink, "F\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t%u\n", it->start, it->end, it->deviceId, it->streamId,
                         it->correlationId);
            return;
        }
        case CUPTI_ACTIVITY_KIND_RUNTIME: {
            const auto* it = reinterpret_cast<const CUpti_ActivityAPI*>(record);
            const char* name = nullptr;
            if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, it->cbid, &name) != CUPTI_SUCCESS || is_quick(name)) return;
            std::fprintf(sink, "R\t%s\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\n", name, it->start, it->end, it->threadId,
                         it->correlationId);
            return;
        }
        case CUPTI_ACTIVITY_KIND_DEVICE:
            std::fprintf(sink, "D\t%s\n", reinterpret_cast<const DEVICE*>(record)->name);
            return;
        default:
            return;
    }
}

void write_modules() {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    if (!maps) return;
    char line[4352], rights[8], path[4097];
    uint64_t start, end, offset;
    while (std::fgets(line, sizeof(line), maps)) {
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4096[^\n]", &start, &end, rights, &offset,
                        path) == 5 && rights[2] == 'x' && path[0] == '/') {
            std::fprintf(sink, "M\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\n", start, end, offset, path);
        }
    }
    std::fclose(maps);
}

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* most) {
    *size = kBufferBytes;
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
    *most = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    const std::lock_guard<std::mutex> guard(writing);
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) write_record(record);
    std::free(buffer);
    write_modules();
    std::fflush(sink);
}

void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    const auto* it = static_cast<const CUpti_CallbackData*>(data);
    if (it->callbackSite != CUPTI_API_ENTER || is_quick(it->functionName)) return;
    void* frames[kFrames];
    const int count = backtrace(frames, kFrames);
    const std::lock_guard<std::mutex> guard(writing);
    std::fprintf(sink, "S\t%u", it->correlationId);
    for (int each = 1; each < count; ++each) std::fprintf(sink, "\t%" PRIuPTR, reinterpret_cast<uintptr_t>(frames[each]));
    std::fputc('\n', sink);
}

void finish() {
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard<std::mutex> guard(writing);
    write_modules();
    std::fflush(sink);
}

}  // namespace

extern "C" int InitializeInjection() {
    const char* path = std::getenv("WARPWRIGHT_CUPTI_TRACE");
    if (!path || sink) return 1;
    sink = std::fopen(path, "a");
    if (!sink) return 1;
    CUpti_SubscriberHandle subscriber;
    bool works = cuptiActivityRegisterCallbacks(requested, completed) == CUPTI_SUCCESS;
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                          CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                                          CUPTI_ACTIVITY_KIND_RUNTIME}) {
        works = works && cuptiActivityEnable(kind) == CUPTI_SUCCESS;
    }
    works = works && cuptiSubscribe(&subscriber, called, nullptr) == CUPTI_SUCCESS;
    works = works && cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS;
    if (!works) std::fprintf(sink, "E\tCUPTI cannot be used here\n");
    cuptiActivityFlushPeriod(kFlushMilliseconds);
    std::atexit(finish);
    return 1;
}
