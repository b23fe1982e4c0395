/*
 * inside.h: what the files of this folder share. Nobody outside includes it, except unit tests.
 *
 *   gpu ── gpu_instance   loader library, VkInstance, message counter, every function pointer
 *       ├─ gpu_candidate  what the physical device is and can
 *       ├─ queue          one queue; a mutex; a timeline semaphore whose value counts submissions
 *       ├─ gpu_staging    two halves of host memory, for buffers that the host cannot see
 *       └─ gpu_pipelines_ table of pipelines by key, VkPipelineCache, its file
 *
 * Order of locks: staging, then creation, then pipelines, then queue; none is held while waiting for the device, except
 * staging.
 */
#ifndef BRAID_GPU_INSIDE_H
#define BRAID_GPU_INSIDE_H

#define VK_NO_PROTOTYPES
#include "gpu/gpu.h"
#include <pthread.h>
#include <stdatomic.h>
#include <vulkan/vulkan_core.h>

/* ---- functions (loader.c) */
#define GPU_GLOBAL_CALLS(X)                                                                                            \
    X(CreateInstance)                                                                                                  \
    X(EnumerateInstanceVersion)                                                                                        \
    X(EnumerateInstanceLayerProperties)                                                                                \
    X(EnumerateInstanceExtensionProperties)
#define GPU_INSTANCE_CALLS(X)                                                                                          \
    X(DestroyInstance)                                                                                                 \
    X(EnumeratePhysicalDevices)                                                                                        \
    X(EnumerateDeviceExtensionProperties)                                                                              \
    X(GetPhysicalDeviceProperties)                                                                                     \
    X(GetPhysicalDeviceProperties2)                                                                                    \
    X(GetPhysicalDeviceFeatures2)                                                                                      \
    X(GetPhysicalDeviceMemoryProperties)                                                                               \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                                          \
    X(CreateDevice)                                                                                                    \
    X(GetDeviceProcAddr)
#define GPU_MESSENGER_CALLS(X)                                                                                         \
    X(CreateDebugUtilsMessengerEXT)                                                                                    \
    X(DestroyDebugUtilsMessengerEXT)
#define GPU_DEVICE_CALLS(X)                                                                                            \
    X(DestroyDevice)                                                                                                   \
    X(DeviceWaitIdle)                                                                                                  \
    X(GetDeviceQueue)                                                                                                  \
    X(CreateBuffer)                                                                                                    \
    X(DestroyBuffer)                                                                                                   \
    X(GetBufferDeviceAddress)                                                                                          \
    X(GetDeviceBufferMemoryRequirements)                                                                               \
    X(AllocateMemory)                                                                                                  \
    X(FreeMemory)                                                                                                      \
    X(BindBufferMemory)                                                                                                \
    X(MapMemory)                                                                                                       \
    X(CreateShaderModule)                                                                                              \
    X(DestroyShaderModule)                                                                                             \
    X(CreatePipelineLayout)                                                                                            \
    X(DestroyPipelineLayout)                                                                                           \
    X(CreateComputePipelines)                                                                                          \
    X(DestroyPipeline)                                                                                                 \
    X(CreatePipelineCache)                                                                                             \
    X(DestroyPipelineCache)                                                                                            \
    X(GetPipelineCacheData)                                                                                            \
    X(CreateCommandPool)                                                                                               \
    X(DestroyCommandPool)                                                                                              \
    X(AllocateCommandBuffers)                                                                                          \
    X(BeginCommandBuffer)                                                                                              \
    X(EndCommandBuffer)                                                                                                \
    X(CmdBindPipeline)                                                                                                 \
    X(CmdPushConstants)                                                                                                \
    X(CmdDispatchIndirect)                                                                                             \
    X(CmdCopyBuffer)                                                                                                   \
    X(CmdFillBuffer)                                                                                                   \
    X(CmdPipelineBarrier2)                                                                                             \
    X(CmdResetQueryPool)                                                                                               \
    X(CmdWriteTimestamp2)                                                                                              \
    X(CreateQueryPool)                                                                                                 \
    X(DestroyQueryPool)                                                                                                \
    X(GetQueryPoolResults)                                                                                             \
    X(CreateSemaphore)                                                                                                 \
    X(DestroySemaphore)                                                                                                \
    X(GetSemaphoreCounterValue)                                                                                        \
    X(WaitSemaphores)                                                                                                  \
    X(QueueSubmit)

/* Of VK_KHR_pipeline_executable_properties; NULL without. */
#define GPU_FIGURE_CALLS(X)                                                                                            \
    X(GetPipelineExecutablePropertiesKHR)                                                                              \
    X(GetPipelineExecutableStatisticsKHR)

typedef struct gpu_calls {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define GPU_POINTER(name) PFN_vk##name name;
    GPU_GLOBAL_CALLS(GPU_POINTER)
    GPU_INSTANCE_CALLS(GPU_POINTER)
    GPU_MESSENGER_CALLS(GPU_POINTER)
    GPU_DEVICE_CALLS(GPU_POINTER)
    GPU_FIGURE_CALLS(GPU_POINTER)
#undef GPU_POINTER
} gpu_calls;

typedef struct gpu_instance {
    void *library;
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger;
    gpu_calls vk;
    logger log;
    atomic_uint_fast64_t messages; /* of the validation layer */
} gpu_instance;

/* Opens the loader and makes an instance. The instance must not move afterwards. gpu_instance_close also cleans up
   after a failure and accepts a cleared struct. */
braid_status gpu_instance_open(gpu_instance *, bool validation, logger, braid_error *err);
void gpu_instance_close(gpu_instance *);
braid_status gpu_load_device_calls(gpu_calls *, VkDevice, braid_error *err);

/* ---- physical devices (device.c) */
typedef struct gpu_candidate {
    VkPhysicalDevice handle;
    braid_device_info info;
    device_traits traits;
    VkPhysicalDeviceType type;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t queue_family, timestamp_bits;
    double timestamp_period; /* ns of one tick */
    uint32_t max_groups[3];
    uint32_t vendor, device, driver_version;
    uint8_t cache_uuid[16]; /* pipelineCacheUUID */
    uint64_t max_allocation;
    bool int8, int16, scalar_layout, subgroup_types;
    bool pin_subgroup; /* sizes vary: the size is part of the pipeline */
    bool full_subgroups;
    bool portability_subset; /* the extension must then be enabled */
    bool figures;            /* VK_KHR_pipeline_executable_properties */
    int mesa;                /* major version of a Mesa driver, else 0 */
} gpu_candidate;

/* Every physical device in the order of the public list. The array is the caller's, freed with mem_free. */
braid_status gpu_scan(const gpu_instance *, gpu_candidate **out, size_t *count, braid_error *err);
/* The device that `select` names. */
braid_status gpu_choose(const gpu_candidate *, size_t count, const char *select, const logger *, size_t *out,
                        braid_error *err);

/* ---- the pipeline cache's file (cache.c) */
typedef struct gpu_cache_identity {
    char braid[16];
    uint64_t build; /* hash of every embedded module */
    uint32_t vendor, device, driver_version, reserved;
    uint8_t device_uuid[16], cache_uuid[16];
} gpu_cache_identity;
/* Folder for the file, created when missing; false and a log line when there is none. */
bool gpu_cache_folder(const char *wanted, const logger *, char *out, size_t capacity);
/* The driver's bytes inside a file's bytes; NULL unless every byte of the file is as it was written for this identity.
 */
const void *gpu_cache_verify(const void *stored, size_t bytes, const gpu_cache_identity *, size_t *data_bytes);
/* Reads and verifies. The bytes are the caller's; *data points into them. NULL: no usable file. */
void *gpu_cache_read(const char *path, const gpu_cache_identity *, const void **data, size_t *bytes);
/* Replaces the file as a whole or leaves it as it was. */
bool gpu_cache_write(const char *path, const gpu_cache_identity *, const void *data, size_t bytes, const logger *);

/* The same for any small file: `head`, then `data`. */
bool gpu_cache_replace(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes, const logger *);

/* ---- figures of the device (probe.c): into the traits, where an earlier probe left a file */
void gpu_rates_load(gpu *);

/* ---- the device */
typedef struct gpu_pipeline {
    uint64_t hash;
    const gpu_shader *shader;
    uint32_t n_spec;
    uint32_t *spec; /* n_spec ids in ascending order, then n_spec values */
    VkPipeline handle;
    uint64_t module_bytes, time_ns, busy_ns; /* as in gpu_creation */
    bool cached;
} gpu_pipeline;

typedef struct gpu_staging {
    pthread_mutex_t lock;
    VkCommandPool pool;
    VkCommandBuffer commands[2];
    gpu_buffer up[2], down[2]; /* made when first needed */
    uint64_t busy[2];          /* timeline value after which a half is free */
} gpu_staging;

struct gpu {
    gpu_instance instance;
    gpu_candidate device;
    VkDevice handle;
    gpu_calls *vk; /* of instance */
    const logger *log;
    atomic_bool lost;

    pthread_mutex_t queue_lock;
    VkQueue queue;
    VkSemaphore timeline;
    uint64_t submitted; /* last timeline value; under queue_lock */

    gpu_staging staging;

    pthread_mutex_t creation_lock; /* held while pipelines are created: one call at a time, many threads each */
    pthread_mutex_t pipeline_lock; /* the table; changed with both held */
    VkPipelineLayout layout;
    VkPipelineCache cache;
    gpu_pipeline **pipelines;
    uint32_t n_pipelines, cap_pipelines;
    uint32_t n_ready; /* of n_pipelines; the others are being created */
    bool strip_float_controls;
    bool figures;     /* pipelines are created so that the driver can tell of them */
    uint32_t unsaved; /* pipelines made since the file was written */
    uint64_t saved_hash;
    gpu_cache_identity identity;
    char cache_path[4096]; /* empty: none */

    atomic_uint_fast64_t allocated; /* bytes of device memory in buffers */
    bool hide_mappings;             /* test: GPU_DEVICE buffers are never mapped */
    uint64_t submit_ns;             /* estimated time that one submission may take */
};

struct gpu_buffer_private {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t shift; /* of gpu_buffer.address from the start of `buffer` */
    uint64_t taken; /* bytes of memory */
};

/* ---- results (check.c). `g` may be NULL; a lost device is remembered. Returns the status that belongs to `result`. */
braid_status gpu_failure(gpu *g, VkResult result, const char *call, braid_error *err);
const char *gpu_result_name(VkResult);
/* DEVICE_LOST once the device was lost. */
braid_status gpu_alive(gpu *, braid_error *err);
/* Calls a function of the device; returns on a negative result. */
#define VK_TRY(g, err, name, ...)                                                                                      \
    do {                                                                                                               \
        VkResult vk_result_ = (g)->vk->name(__VA_ARGS__);                                                              \
        if (vk_result_ < 0) return gpu_failure((g), vk_result_, "vk" #name, (err));                                    \
    } while (0)

/* ---- the queue (queue.c) */
braid_status gpu_queue_open(gpu *, braid_error *err);
void gpu_queue_close(gpu *);
/* Submits n command buffers, each on its own; *value receives the timeline value of the last one that was submitted,
   also on failure (0: none was). */
braid_status gpu_submit(gpu *, uint32_t n, const VkCommandBuffer *, uint64_t *value, braid_error *err);
/* The same with what comes before the first and after the last, in the same submissions. */
braid_status gpu_submit_between(gpu *, uint32_t n, const VkCommandBuffer *, const VkCommandBuffer around[2], uint64_t *value,
                                braid_error *err);
/* Waits until the timeline has reached `value`. `spin`: poll first, for work that is expected to be short. */
braid_status gpu_wait(gpu *, uint64_t value, bool spin, braid_error *err);
/* Has everything up to `value` ended, or never will because the device is lost. */
void gpu_settle(gpu *, uint64_t value);
void gpu_barrier(const gpu *, VkCommandBuffer, VkPipelineStageFlags2 from, VkAccessFlags2 wrote,
                 VkPipelineStageFlags2 to, VkAccessFlags2 uses);

/* ---- staging and pipelines */
braid_status gpu_staging_open(gpu *, braid_error *err);
void gpu_staging_close(gpu *);
braid_status gpu_pipelines_open(gpu *, const braid_device_options *, braid_error *err);
void gpu_pipelines_close(gpu *);
VkPipeline gpu_pipeline_handle(gpu *, uint32_t handle); /* VK_NULL_HANDLE when out of range */
/* Copies a module without SignedZeroInfNanPreserve, for devices that lack it. Returns the number of words. */
size_t gpu_strip_float_controls(const uint32_t *code, size_t words, uint32_t *out);

#endif
