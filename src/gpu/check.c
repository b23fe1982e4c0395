/*
 * check.c: VkResult -> status.
 */
#include "gpu/inside.h"

#define RESULT_MAP(X)                                                                                                  \
    X(NOT_READY)                                                                                                       \
    X(TIMEOUT)                                                                                                         \
    X(INCOMPLETE)                                                                                                      \
    X(ERROR_OUT_OF_HOST_MEMORY)                                                                                        \
    X(ERROR_OUT_OF_DEVICE_MEMORY)                                                                                      \
    X(ERROR_INITIALIZATION_FAILED)                                                                                     \
    X(ERROR_DEVICE_LOST)                                                                                               \
    X(ERROR_MEMORY_MAP_FAILED)                                                                                         \
    X(ERROR_LAYER_NOT_PRESENT)                                                                                         \
    X(ERROR_EXTENSION_NOT_PRESENT)                                                                                     \
    X(ERROR_FEATURE_NOT_PRESENT)                                                                                       \
    X(ERROR_INCOMPATIBLE_DRIVER)                                                                                       \
    X(ERROR_TOO_MANY_OBJECTS)                                                                                          \
    X(ERROR_FRAGMENTED_POOL)                                                                                           \
    X(ERROR_OUT_OF_POOL_MEMORY)                                                                                        \
    X(ERROR_INVALID_EXTERNAL_HANDLE)                                                                                   \
    X(ERROR_FRAGMENTATION)                                                                                             \
    X(ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)                                                                            \
    X(ERROR_INVALID_SHADER_NV)                                                                                         \
    X(ERROR_UNKNOWN)

const char *gpu_result_name(VkResult r) {
    switch (r) {
    case VK_SUCCESS:
        return "VK_SUCCESS";
#define RESULT_CASE(name)                                                                                              \
    case VK_##name:                                                                                                    \
        return "VK_" #name;
        RESULT_MAP(RESULT_CASE)
#undef RESULT_CASE
    default:
        return "an unknown result";
    }
}

static braid_status status_of(VkResult r) {
    switch (r) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return BRAID_HOST_MEMORY;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return BRAID_DEVICE_MEMORY;
    case VK_ERROR_DEVICE_LOST:
        return BRAID_DEVICE_LOST;
    default:
        return BRAID_INTERNAL;
    }
}

braid_status gpu_failure(gpu *g, VkResult r, const char *call, braid_error *err) {
    if (g && r == VK_ERROR_DEVICE_LOST && !atomic_exchange(&g->lost, true))
        log_line(g->log, BRAID_LOG_ERROR, "device '%s' is lost (%s)", g->device.info.name, call);
    return error_set(err, status_of(r), "%s gave %s (%d)", call, gpu_result_name(r), (int)r);
}

braid_status gpu_alive(gpu *g, braid_error *err) {
    if (!atomic_load(&g->lost)) return BRAID_OK;
    return error_set(err, BRAID_DEVICE_LOST, "device '%s' was lost; open it again", g->device.info.name);
}
