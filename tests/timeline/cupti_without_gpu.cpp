// What a test needs of CUPTI, which sees nothing without a GPU: the names of calls of the runtime, and calls.
#include <cupti.h>

#include "cupti_trace.cpp"

namespace {

constexpr uint32_t kLaunch = 211, kLastError = 13;
CUpti_CallbackFunc callback;
uint32_t correlation;

const char* name_of(uint32_t call) {
    return call == kLaunch ? "cudaLaunchKernel_v7000" : call == kLastError ? "cudaGetLastError_v3020" : "cudaMemcpy_v3020";
}

}  // namespace

extern "C" {
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, uint32_t call, const char** name) {
    *name = name_of(call);
    return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc given, void*) {
    callback = given;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(uint64_t* time) {
    static uint64_t clock = 0;
    *time = clock += 10;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc) {
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId, uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(uint32_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetNextRecord(uint8_t*, size_t, CUpti_Activity**) { return CUPTI_ERROR_UNKNOWN; }
}

__attribute__((noinline)) void launch() {
    CUpti_CallbackData data{};
    data.callbackSite = CUPTI_API_ENTER;
    data.functionName = name_of(kLaunch);
    data.correlationId = ++correlation;
    callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch, &data);
    std::fprintf(sink, "R\t%s\t%u\t%u\t7\t%u\n", data.functionName, 1000 * correlation, 1000 * correlation + 1, correlation);
}

void begin() { InitializeInjection(); }
unsigned known() { return stacks.load(); }
