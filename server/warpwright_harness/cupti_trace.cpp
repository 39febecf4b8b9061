// Loaded into a CUDA program by the driver (CUDA_INJECTION64_PATH): writes down by CUPTI what the program gave its GPUs
// and which calls gave it, into the file that WARPWRIGHT_CUPTI_TRACE names.
//
// Lines, whose fields are parted by tabs; times are nanoseconds of CUPTI's clock:
//   D name                                                      a GPU
//   R name start end thread correlation                         a call of the CUDA runtime
//   T stack address address ...                                 a stack, the innermost frame first
//   S correlation stack start end                               where a call was made, and how long this took to see
//   K name start end device stream correlation gx gy gz bx by bz
//   C kind source destination bytes start end device stream correlation
//   F start end device stream correlation                       a memset
//   M start end offset path                                     a file's code in memory, as often as it is said
// The structs' names have a version, which changes with the header: KERNEL, MEMCPY, MEMSET and DEVICE are defined where
// this is compiled.
#include <cupti.h>
#include <cxxabi.h>
#include <unwind.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <vector>

namespace {

constexpr size_t kBufferBytes = 4u << 20;
constexpr int kFrames = 24;
constexpr size_t kSets = 64, kWays = 8;
constexpr size_t kMarks = 1u << 16;
constexpr uint32_t kFlushMilliseconds = 200;

std::FILE* sink = nullptr;
std::mutex writing;

struct Mark {
    uint32_t correlation, stack;
    uint64_t start, end;
};
std::vector<Mark> marks;

// A stack is looked at once: the next call of the same function from the same depth has it again where each return
// address is still in its place.
struct Stack {
    CUpti_CallbackId call = 0;
    uintptr_t depth = 0;
    int frames = 0;
    uint32_t id = 0;
    uintptr_t places[kFrames], returns[kFrames];
    bool is_known = false;  // whether every return address was found where it is read again
};
std::atomic<uint32_t> stacks{0};
thread_local Stack known_stacks[kSets * kWays];

_Unwind_Reason_Code look(_Unwind_Context* context, void* given) {
    auto* stack = static_cast<Stack*>(given);
    const uintptr_t address = _Unwind_GetIP(context), place = _Unwind_GetCFA(context) - sizeof(uintptr_t);
    if (stack->frames == kFrames || !address) return _URC_END_OF_STACK;
    // The first frames are of this library, which calls from the same place each time.
    const bool is_ours = place <= stack->depth;
    stack->is_known = stack->is_known && (is_ours || *reinterpret_cast<const uintptr_t*>(place) == address);
    stack->places[stack->frames] = place;
    stack->returns[stack->frames++] = address;
    return _URC_NO_REASON;
}

bool is_still(const Stack& stack, CUpti_CallbackId call, uintptr_t depth) {
    if (stack.call != call || stack.depth != depth || !stack.is_known) return false;
    for (int each = 0; each < stack.frames; ++each) {
        const uintptr_t place = stack.places[each];
        if (place > depth && *reinterpret_cast<const uintptr_t*>(place) != stack.returns[each]) return false;
    }
    return true;
}

uint32_t stack_of(CUpti_CallbackId call, uintptr_t depth) {
    Stack* known = known_stacks + (depth / 16 * 31 + call) % kSets * kWays;
    for (size_t way = 0; way < kWays; ++way) {
        if (is_still(known[way], call, depth)) return known[way].id;
    }
    const uint32_t id = ++stacks;
    Stack& stack = known[id % kWays];
    stack.call = call;
    stack.depth = depth;
    stack.frames = 0;
    stack.is_known = true;
    stack.id = id;
    _Unwind_Backtrace(look, &stack);
    const std::lock_guard<std::mutex> guard(writing);
    std::fprintf(sink, "T\t%u", id);
    for (int at = 0; at < stack.frames; ++at) std::fprintf(sink, "\t%" PRIuPTR, stack.returns[at]);
    std::fputc('\n', sink);
    return id;
}

uint64_t now() {
    uint64_t time = 0;
    cuptiGetTimestamp(&time);
    return time;
}

void write_marks() {
    for (const Mark& it : marks) {
        std::fprintf(sink, "S\t%u\t%u\t%" PRIu64 "\t%" PRIu64 "\n", it.correlation, it.stack, it.start, it.end);
    }
    marks.clear();
}

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
    write_marks();
    write_modules();
    std::fflush(sink);
}

void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId call, const void* data) {
    const auto* it = static_cast<const CUpti_CallbackData*>(data);
    if (it->callbackSite != CUPTI_API_ENTER) return;
    const uint64_t start = now();
    const uint32_t stack = stack_of(call, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
    const std::lock_guard<std::mutex> guard(writing);
    if (marks.size() == kMarks) write_marks();
    marks.push_back({it->correlationId, stack, start, 0});
    marks.back().end = now();
}

void finish() {
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard<std::mutex> guard(writing);
    write_marks();
    write_modules();
    std::fflush(sink);
}

// Calls that are quick are not seen at all, where this CUPTI can leave some out: to see them takes longer than they do.
bool see_calls(CUpti_SubscriberHandle subscriber) {
    bool works = true;
    for (CUpti_CallbackId call = 1; call < CUPTI_RUNTIME_TRACE_CBID_SIZE; ++call) {
        const char* name = nullptr;
        if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, call, &name) != CUPTI_SUCCESS || !name) continue;
        if (is_quick(name)) {
#if CUPTI_API_VERSION >= 130000
            cuptiActivityEnableRuntimeApi(call, 0);
#endif
            continue;
        }
        works = works && cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, call) == CUPTI_SUCCESS;
    }
    return works;
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
    works = works && see_calls(subscriber);
    marks.reserve(kMarks);
    if (!works) std::fprintf(sink, "E\tCUPTI cannot be used here\n");
    cuptiActivityFlushPeriod(kFlushMilliseconds);
    std::atexit(finish);
    return 1;
}
